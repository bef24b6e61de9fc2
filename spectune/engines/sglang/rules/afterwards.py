"""What resolves and then dies: the resolver lets all of this pass."""

from __future__ import annotations

from spectune.counts import count
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.eagle import draft_token_bounds
from spectune.engines.sglang.rules.kernels import or_take, single_page, take
from spectune.engines.sglang.rules.rule import LAUNCHED, RAN, READ, Rule
from spectune.engines.sglang.rules.state import State

INT32 = 2**31
FLAT_OFFSETS = frozenset({"flashinfer", "triton", "aiter"})


def draft_backend(state: State, *, extend: bool = False) -> str | None:
    """Return the attention backend the drafter decodes with, or extends with after a verify."""
    prefill, decode = state.backends
    target = prefill if extend and state.get(n.ATTENTION_MODE) != "decode" else decode
    backend = state.get(n.DRAFT_ATTENTION) or target
    return None if backend is None else str(backend)


def _least_steps(topk: int) -> int:
    """Return the fewest steps a draft can have: a chain of none is verified as its root alone, a tree cannot be."""
    return 0 if topk == 1 else 1


def _outside_tree(state: State) -> bool:
    steps, topk, tokens = state.triple
    if not state.eagle or state.on(n.ADAPTIVE) or None in (steps, topk, tokens):
        return False
    if topk < 1 or steps < _least_steps(topk):
        return True
    least, most = draft_token_bounds(steps, topk)
    return not least <= tokens <= most


def _outside_tree_text(state: State) -> str:
    steps, topk, tokens = state.triple
    if topk < 1 or steps < _least_steps(topk):
        return f"steps {steps} and top-k {topk} must both be at least 1"
    least, most = draft_token_bounds(steps, topk)
    return (
        f"{count(tokens, 'draft token')} with {count(steps, 'step')} and top-k {topk}: {least} to {most} can be filled"
    )


def _tree_advice(state: State) -> str:
    steps, topk, _ = state.triple
    if topk < 1 or steps < _least_steps(topk):
        return f"{n.STEPS} and {n.TOPK} from 1 on"
    least, most = draft_token_bounds(steps, topk)
    return f"{n.DRAFT_TOKENS} from {max(least, steps + 1)} to {most}, or more steps or branches"


def _chain_of_none(state: State) -> bool:
    """Whether SGLang is told to speculate without drafting, which adaptive speculation may do for large batches."""
    return state.eagle and not state.on(n.ADAPTIVE) and state.get(n.TOPK) == 1 and state.get(n.STEPS) == 0


def _below_steps(state: State) -> bool:
    """Whether a tree is cut to fewer nodes than a path through it has; SGLang copies S + 1 of them at each verify."""
    steps, topk, tokens = state.triple
    known = state.eagle and not state.on(n.ADAPTIVE) and None not in (steps, topk, tokens)
    return bool(known and topk > 1 and 2 <= tokens <= steps)


def chain_only(state: State) -> tuple[str, str] | None:
    """Return the first role whose attention backend takes one branch only, None when all take trees."""
    prefill, decode = state.backends
    roles = (("prefill", prefill), ("decode", decode), ("draft", draft_backend(state)))
    found = ((role, backend) for role, backend in roles if backend in n.CHAIN_ONLY)
    if (hit := next(found, None)) is None and state.model.mla and (state.get(n.STEPS) or 0) > 1:
        hit = ("draft", "flashinfer") if draft_backend(state) == "flashinfer" else None
    return hit


def _unpaged(state: State) -> set[str]:
    """Return the backends that cannot serve a branching draft with pages, wherever they are used."""
    if not (state.eagle and state.tree and int(state.get(n.PAGE) or 1) > 1):
        return set()
    return {str(b) for b in (*state.backends, draft_backend(state)) if b is not None} - set(n.PAGED_TREE)


def _undraftable(state: State) -> str | None:
    """Return an attention backend that SGLang has no drafter for."""
    roles = [draft_backend(state, extend=True)] + ([draft_backend(state)] if (state.get(n.STEPS) or 0) > 1 else [])
    return next((role for role in roles if role is not None and role not in n.DRAFT_BACKENDS), None)


def _overflow(state: State) -> bool:
    context = state.get(n.CONTEXT) or state.model.integer("max_position_embeddings")
    running = state.get(n.RUNNING)
    if not state.eagle or context is None or running is None or draft_backend(state) not in FLAT_OFFSETS:
        return False
    return int(running) // state.attention_groups * int(state.get(n.TOPK) or 1) * int(context) >= INT32


def _vocabularies(state: State, *, reduced: bool) -> tuple[int, int] | None:
    """Return the two vocabulary sizes where both are known and differ."""
    if state.draft is None:
        return None
    own = state.draft.integer("draft_vocab_size") if reduced else None
    sizes = state.model.integer("vocab_size"), own or state.draft.integer("vocab_size")
    return None if None in sizes or sizes[0] == sizes[1] else sizes  # type: ignore[return-value]


def _no_draft_graphs(state: State) -> bool:
    """Whether attention data parallelism leaves the drafter without a batch size it may capture."""
    sizes = (state.get(n.DECODE_GRAPH) or {}).get("bs")
    if not (state.eagle and state.attention_dp and sizes) or state.values[n.DECODE_GRAPH]["backend"] == "disabled":
        return False
    width = state.number("tp-size") // state.attention_groups
    return all(size % width for size in sizes)


# fmt: off
AFTERWARDS = (
    Rule(
        "draft-tokens-missing", "die", lambda s: s.eagle and s.tree and s.get(n.DRAFT_TOKENS) is None,
        "a branching draft without speculative-num-draft-tokens resolves, but cannot run", "R4", RAN,
        advice="pass speculative-num-draft-tokens",
    ),
    Rule(
        "tree-bounds", "die", _outside_tree, _outside_tree_text, "R5 eagle_utils.py:100", LAUNCHED,
        advice=_tree_advice,
    ),
    Rule(
        "no-steps", "die", _chain_of_none, "this version drafts at least one step",
        "eagle_worker_v2.py: a chain without steps came with 0.5.14", READ, until="0.5.13",
        advice="speculative-num-steps from 1 on",
    ),
    Rule(
        "nothing-drafted", "pointless", _chain_of_none,
        "with 0 steps nothing is drafted: SGLang starts and verifies one token at a time, and the drafter costs time "
        "all the same", "eagle_worker_v2.py:1469", LAUNCHED, since="0.5.14",
        advice="speculative-num-steps from 1 on, or no speculative-algorithm",
    ),
    Rule(
        "tree-below-steps", "die", _below_steps,
        lambda s: (f"{count(s.triple[2], 'draft token')} cannot hold a path of {count(s.triple[0], 'step')}: a tree's "
                   "first verify fails"),
        "eagle_worker_common.py:543", LAUNCHED, since="0.5.13",  # read in the wheels of 0.5.13 to 0.5.22
        advice=lambda s: f"at least {s.get(n.STEPS) + 1} draft tokens, or fewer steps",
    ),
    Rule(
        "topk-backend", "die", lambda s: s.eagle and s.tree and chain_only(s) is not None,
        lambda s: "the {} attention backend {} takes top-k 1 only".format(*(chain_only(s) or ())),
        "R7 trtllm_mha_backend.py:267, flashmla_backend.py:608, flashinfer_mla_backend.py:1196", READ,
        advice=lambda s: or_take("top-k 1", s),
    ),
    Rule(
        "topk-page-split", "die", lambda s: bool(_unpaged(s)),
        lambda s: (f"top-k {s.get(n.TOPK)} with page size {s.get(n.PAGE)} does not run on "
                   f"{', '.join(sorted(_unpaged(s)))}"),
        "R7", READ, advice=lambda s: or_take(single_page(s), s),
    ),
    Rule(
        "draft-backend", "die", lambda s: s.eagle and _undraftable(s) is not None,
        lambda s: f"EAGLE is not supported in attention backend {_undraftable(s)}", "section 1, draft_utils.py:96",
        READ,
        advice=lambda s: f"speculative-draft-{take(s)}",
    ),
    Rule(
        "draft-mla", "die",
        lambda s: s.eagle and s.draft is not None and s.draft.architecture is not None and not s.draft.mla
        and not s.model.mla and draft_backend(s) in ("trtllm_mla", "cutedsl_mla"),
        lambda s: f"{draft_backend(s)} backend requires MLA model (use_mla_backend=True).", "R7 draft_utils.py:358",
        READ,
        advice=lambda s: f"speculative-draft-{take(s)}",
    ),
    Rule(
        "offset-overflow", "die", _overflow,
        "kv_indices flat offset would overflow int32; reduce batch/topk/context", "R6 spec_utils.py:298", READ,
        advice="fewer running requests, smaller top-k or context-length",
    ),
    Rule(
        "nothing-looked-up", "pointless",
        lambda s: s.algorithm == "NGRAM" and (s.get(n.DRAFT_TOKENS) < 2 or s.get(n.NGRAM_BREADTH) < 1),
        lambda s: (f"{count(s.get(n.DRAFT_TOKENS), 'draft token')} and a breadth of {s.get(n.NGRAM_BREADTH)} leave "
                   "nothing to look up"), "ngram_worker.py", READ,
        advice="speculative-num-draft-tokens from 2 on, speculative-ngram-max-bfs-breadth from 1 on",
    ),
    Rule(
        "memory-fraction-bounds", "die",
        lambda s: s.get(n.MEMORY) is not None and not 0 < s.get(n.MEMORY) < 1,
        lambda s: f"a memory fraction of {s.get(n.MEMORY):g} leaves no room for weights and KV cache, or for the rest",
        "R22 pool_configurator.py:94", READ, advice="mem-fraction-static between 0 and 1, 0.85 for one",
    ),
    Rule(
        "no-drafter", "die",
        lambda s: s.eagle and s.get(n.DRAFT_MODEL) is None and s.model.architecture is not None,
        lambda s: f"{s.algorithm} on {s.model.architecture} has no draft model", "section 1.1", READ,
        advice="pass speculative-draft-model-path",
    ),
    Rule(
        "standalone-vocabulary", "die",
        lambda s: s.algorithm == "STANDALONE" and _vocabularies(s, reduced=False) is not None,
        lambda s: ("STANDALONE speculative decoding requires the draft model to share the same vocabulary as the "
                   "target model: {} against {} tokens".format(*(_vocabularies(s, reduced=False) or ()))),
        "R8 standalone_worker_v2.py:185", READ, since="0.5.15",
        advice="a drafter of the same family and padding; padding alone is harmless, but refused since 0.5.15",
    ),
    Rule(
        "rejection-vocabulary", "die",
        lambda s: s.eagle and s.on(n.REJECTION) and _vocabularies(s, reduced=True) is not None,
        lambda s: "rejection sampling needs a drafter with the target's vocabulary: {} against {} tokens".format(
            *(_vocabularies(s, reduced=True) or ())), "R11 eagle_worker_v2.py:260", READ,
        advice="leave rejection sampling off with this drafter",
    ),
    Rule(
        "draft-graph-sizes", "die", _no_draft_graphs,
        "no captured batch size is a multiple of the attention tensor-parallel size: AssertionError: capture_bs=[...]",
        "section 3, base_cuda_graph_runner.py:104", READ, advice="add such a size to cuda-graph-bs-decode",
    ),
)
# fmt: on
