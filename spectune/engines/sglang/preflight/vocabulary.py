"""Whether a token means the same to the drafter and to the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectune.engines.sglang.preflight.check import Check
from spectune.engines.sglang.preflight.pair import Pair
from spectune.engines.sglang.preflight.safetensors_header import Tensor
from spectune.engines.sglang.preflight.tokens import compared
from spectune.engines.sglang.preflight.values import FLOATS, integers
from spectune.engines.sglang.rules.rule import LAUNCHED, READ
from spectune.typed_json import whole_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LLAMA_HEAD = "LlamaForCausalLMEagle3"
SHOWN = 3  # tokens in a message


def _draft_vocabulary(pair: Pair) -> int | None:
    """Return the tokens an EAGLE-3 drafter chooses from."""
    said = whole_number(pair.draft.model.config.get("draft_vocab_size"))
    return pair.draft.vocab_size if said is None else said


def _map(pair: Pair, name: str) -> Tensor | None:
    return pair.draft.weights.named(name) if pair.eagle3 else None


def _mapped(pair: Pair) -> NDArray[np.int64] | None:
    """Return the target's token for each of the drafter's: d2t holds the differences (models/llama_eagle3.py:350)."""
    d2t = _map(pair, "d2t")
    offsets = None if d2t is None else integers(d2t)
    if offsets is None:
        return None
    import numpy as np

    return offsets + np.arange(len(offsets))


def _unnamed(pair: Pair) -> str | None:
    """Say that a llama head reads a key that its config lacks; other heads do without."""
    config = pair.draft.model.config
    if not pair.eagle3 or pair.draft.architecture != LLAMA_HEAD or "draft_vocab_size" in config:
        return None
    if config.get("tie_word_embeddings"):
        return None
    return f"{pair.draft.name}: its config.json has no draft_vocab_size: AttributeError when the drafter is built"


def _head(pair: Pair) -> str | None:
    head, wanted = _map(pair, "lm_head.weight"), _draft_vocabulary(pair)
    if head is None or wanted is None or head.dtype not in FLOATS or pair.draft.model.config.get("tie_word_embeddings"):
        return None
    if head.shape == (wanted, pair.draft.hidden_size):
        return None
    return (
        f"{pair.draft.name}: its lm_head.weight has {list(head.shape)}, but its config asks for "
        f"{[wanted, pair.draft.hidden_size]} (draft_vocab_size, hidden_size)"
    )


def _no_map(pair: Pair) -> str | None:
    wanted, whole = _draft_vocabulary(pair), pair.draft.vocab_size
    if not pair.eagle3 or not pair.has_weights or _map(pair, "d2t") is not None:
        return None
    if wanted is None or whole is None or wanted >= whole:
        return None
    return (
        f"{pair.draft.name} chooses from {wanted} of {whole} tokens and has no d2t that says which: "
        "its choices are taken for the first ones"
    )


def _map_length(pair: Pair) -> str | None:
    d2t, wanted = _map(pair, "d2t"), _draft_vocabulary(pair)
    if d2t is None or wanted is None or d2t.shape == (wanted,):
        return None
    return f"{pair.draft.name}: its d2t has {list(d2t.shape)} entries for draft_vocab_size {wanted}"


def _map_range(pair: Pair) -> str | None:
    tokens, size = _mapped(pair), pair.target.vocab_size
    if tokens is None:
        return None
    wrong = tokens < 0 if size is None else (tokens < 0) | (tokens >= size)
    if not wrong.any():
        return None
    first = int(wrong.argmax())
    return (
        f"{pair.draft.name}: d2t sends {int(wrong.sum())} of {len(tokens)} tokens outside the target's "
        f"{'vocabulary' if size is None else size}, the first being {first} → {int(tokens[first])}"
    )


def _map_against_other(pair: Pair) -> str | None:
    """Compare d2t with t2d, which marks the same tokens, and that SGLang does not read."""
    tokens, t2d = _mapped(pair), _map(pair, "t2d")
    marked = None if t2d is None else integers(t2d)
    if tokens is None or marked is None or not len(tokens) or _map_range(pair) is not None:
        return None
    if tokens.max() >= len(marked):
        return f"{pair.draft.name}: its t2d knows {len(marked)} tokens, but d2t names token {int(tokens.max())}"
    agreed = int((marked[tokens] != 0).sum())
    if agreed == len(tokens):
        return None
    return f"{pair.draft.name}: of the {len(tokens)} tokens that d2t names, t2d marks {agreed}"


def _map_repeats(pair: Pair) -> str | None:
    tokens = _mapped(pair)
    if tokens is None or len(different := set(tokens.tolist())) == len(tokens):
        return None
    return f"{pair.draft.name}: its d2t names {len(different)} different tokens for {len(tokens)} places"


def _size(pair: Pair) -> str | None:
    ours, theirs = pair.draft.vocab_size, pair.target.vocab_size
    if not pair.head or ours is None or theirs is None or ours == theirs:
        return None
    return f"{pair.draft.name} has vocab_size {ours}, {pair.target.name} {theirs}, whose embedding it borrows"


def _differing(pair: Pair) -> tuple[int, int, str] | None:
    """Return how many ids mean different tokens to the two, of how many, and some of them; None for none.

    SGLang compares the sizes alone: its own comparison of tokens is given no tokenizer of the drafter
    (managers/tp_worker.py:326).
    """
    ours, theirs = pair.draft.token_ids, pair.target.token_ids
    if pair.algorithm != "STANDALONE" or pair.kind != "whole" or ours is None or theirs is None:
        return None
    shared, found = compared(ours, theirs)
    shown = ", ".join(f"{index} is {one!r} and {other!r}" for index, one, other in found[:SHOWN])
    return (len(found), shared, shown) if found else None


def _other_tokenizer(pair: Pair) -> str | None:
    found = _differing(pair)
    if found is None or 2 * found[0] < found[1]:
        return None
    return (
        f"{pair.draft.name} and {pair.target.name} have different tokens for {found[0]} of {found[1]} ids: {found[2]}; "
        "SGLang does not notice, and what is drafted means something else to the target"
    )


def _tokens(pair: Pair) -> str | None:
    found = _differing(pair)
    if found is None or 2 * found[0] >= found[1]:
        return None
    return f"{pair.draft.name} and {pair.target.name} have different tokens for {found[0]} ids: {found[2]}"


# fmt: off
VOCABULARY = (
    Check("draft-vocabulary-unnamed", "fatal", _unnamed, "models/llama_eagle3.py:306", LAUNCHED,
          advice="draft_vocab_size: the rows of lm_head.weight, or null where the drafter borrows the target's head"),
    Check("draft-head-shape", "fatal", _head, "models/llama_eagle3.py:310", READ,
          advice="draft_vocab_size must be the rows of lm_head.weight"),
    Check("vocabulary-map-missing", "fatal", _no_map, "models/llama_eagle3.py:355", LAUNCHED,
          advice="take a complete checkpoint, or write d2t as it was in training"),
    Check("vocabulary-map-length", "fatal", _map_length, "models/llama_eagle3.py:350", READ,
          advice="d2t has one entry for each row of the drafter's lm_head"),
    Check("vocabulary-map-range", "fatal", _map_range, "models/llama_eagle3.py:350", LAUNCHED,
          advice="d2t holds differences, target token - draft token, of the target's own vocabulary"),
    Check("vocabulary-maps-disagree", "warning", _map_against_other, "models/llama_eagle3.py:355", READ,
          advice="d2t holds differences, target token - draft token; where it holds the tokens themselves, nothing is "
                 "accepted"),
    Check("vocabulary-map-repeats", "warning", _map_repeats, "models/llama_eagle3.py:350", READ,
          advice="the drafter wastes rows; write d2t as it was in training"),
    Check("vocabulary-size", "warning", _size, "models/llama.py:910", READ,
          advice="harmless where only the padding differs; otherwise take the drafter made for this target"),
    Check("other-tokenizer", "fatal", _other_tokenizer, "managers/tp_worker.py:326, standalone_worker_v2.py:207", READ,
          advice="a drafter of the target's family"),
    Check("tokens-differ", "warning", _tokens, "managers/tp_worker.py:326, standalone_worker_v2.py:207", LAUNCHED,
          advice="drafts with these tokens are lost; a drafter of the target's family has none"),
)
# fmt: on
