"""Rules on the S, K and N of EAGLE, EAGLE3 and STANDALONE, in the order SGLang applies them."""

from __future__ import annotations

from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.kernels import or_take, single_page
from spectune.engines.sglang.rules.rule import RAN, READ, Rule
from spectune.engines.sglang.rules.state import State

DEEP_BY_DEFAULT = ("LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM")
RUNNING_REQUESTS = 48


def draft_token_bounds(num_steps: int, eagle_topk: int) -> tuple[int, int]:
    """Return the least and the greatest N that a draft of S steps with K branches can fill.

    A tree holds the root, K children of it and K² candidates in each later step, so 2 ≤ N ≤ 1 + K + (S−1)·K²
    (R5); for a chain (K = 1) SGLang rewrites N to S + 1 (R3). From 0.5.13 on, a tree of fewer than S + 1 nodes dies
    at its first verify, which is a rule of its own.
    """
    if eagle_topk == 1:
        return num_steps + 1, num_steps + 1
    return 2, 1 + eagle_topk + (num_steps - 1) * eagle_topk**2


def automatic(state: State) -> tuple[int, int, int]:
    """Return the S, K, N SGLang picks when none of them is given."""
    deep = state.algorithm != "STANDALONE" and state.model.architecture in DEEP_BY_DEFAULT
    return (5, 4, 8) if deep else (3, 1, 4)


def _number_missing(state: State) -> bool:
    """Whether a search would leave one of S, K, N to SGLang."""
    missing = [value is None for value in state.triple]
    if not state.eagle or state.on(n.ADAPTIVE):
        return False
    return any(missing) if state.searching else all(missing)


def _capped(state: State) -> str:
    """Say what is decided without, and what after, the limit."""
    most = (state.get(n.DECODE_GRAPH) or {}).get("max_bs")
    sized = "" if most is None or most == RUNNING_REQUESTS else f", but sizes graphs and memory for {most}"
    return f"SGLang caps running requests at {RUNNING_REQUESTS} under speculation{sized}"


def paged_tree(state: State, backends: tuple[str, ...]) -> bool:
    """Whether a branching draft runs with pages on a backend that cannot."""
    return state.tree and (state.get(n.PAGE) or 1) > 1 and state.get(n.ATTENTION) not in backends


# fmt: off
EAGLE = (
    Rule(
        "incomplete-draft", "implicit", _number_missing,
        lambda s: ("SGLang chooses steps, top-k and draft tokens itself, and the attention backend as if top-k were 1; "
                   "the same numbers written out may run on another backend") if not s.searching else
        f"{s.algorithm} needs {n.STEPS}, {n.TOPK} and {n.DRAFT_TOKENS} together",
        "sections 2.7 and R1, R2, R4", RAN,
        advice="pass speculative-num-steps, speculative-eagle-topk, speculative-num-draft-tokens, attention-backend "
               "and page-size",
    ),
    Rule(
        "standalone-dp", "reject", lambda s: s.algorithm == "STANDALONE" and s.attention_dp,
        "ValueError: Currently standalone speculative decoding does not support dp attention.",
        "R8 speculative_hook.py:1078", RAN, advice="attn-dp-size 1, or EAGLE3",
    ),
    Rule(
        "running-requests", "rewrite",
        lambda s: s.algorithm in n.RULED | {"FROZEN_KV_MTP"} and s.get(n.RUNNING) is None,
        _capped,
        "sections 1.1 and 2.7, speculative_hook.py:1086", RAN, sets=lambda _: {n.RUNNING: RUNNING_REQUESTS},
        advice="set max-running-requests to what you need: graphs and memory are then planned for it",
    ),
    Rule(
        "cpu-overlap", "rewrite",
        lambda s: s.algorithm in n.RULED and s.cpu and not s.on("disable-overlap-schedule"),
        "Overlap schedule is not implemented for speculative decoding on CPU.", "speculative_hook.py:66", RAN,
        sets=lambda _: {"disable-overlap-schedule": True},
    ),
    Rule(
        "overlap-off-before-spec-v2", "rewrite", lambda s: s.eagle and (s.tree or s.algorithm == "STANDALONE"),
        "this version runs a branching draft without the overlap schedule", "section 6", READ,
        sets=lambda _: {"disable-overlap-schedule": True}, until="0.5.10",
    ),
    Rule(
        "mixed-chunk-off", "rewrite",
        lambda s: s.on("enable-mixed-chunk") and s.algorithm in {"STANDALONE", "NGRAM", "FROZEN_KV_MTP", "UNO"},
        "Mixed chunked prefill is disabled: this algorithm does not support it.", "R9 speculative_hook.py:1104", RAN,
        sets=lambda _: {"enable-mixed-chunk": False},
    ),
    Rule(
        "bundled-draft", "rewrite",
        lambda s: s.eagle and s.get(n.DRAFT_MODEL) is None and s.model.architecture in n.BUNDLED_DRAFT,
        "the model brings its own draft layers", "section 1.1, speculative_hook.py:1120", RAN,
        sets=lambda s: {n.DRAFT_MODEL: s.get(n.MODEL)},
    ),
    Rule(
        "auto-alone", "reject",
        lambda s: s.eagle and not s.on(n.ADAPTIVE) and s.get(n.STEPS) is None and s.triple != (None, None, None),
        "AssertionError: ", "R1 speculative_hook.py:1159", RAN,
        advice="without speculative-num-steps, neither speculative-eagle-topk nor speculative-num-draft-tokens may be "
               "given; SGLang gives no message",
    ),
    Rule(
        "auto-draft", "rewrite", lambda s: s.eagle and s.get(n.STEPS) is None, "",
        "section 1.1, speculative_hook.py:1430", RAN,
        sets=lambda s: dict(zip((n.STEPS, n.TOPK, n.DRAFT_TOKENS), automatic(s), strict=True)),
    ),
    Rule(
        "topk-missing-trtllm-mha", "reject",
        lambda s: s.eagle and s.get(n.TOPK) is None and "trtllm_mha" in s.backends,
        "TypeError: '>' not supported between instances of 'NoneType' and 'int'", "R2 speculative_hook.py:1177", RAN,
        advice="pass speculative-eagle-topk with speculative-num-steps",
    ),
    Rule(
        "topk-trtllm-mha", "reject", lambda s: s.eagle and s.tree and "trtllm_mha" in s.backends,
        "ValueError: trtllm_mha backend only supports topk = 1 for speculative decoding.",
        "R7 speculative_hook.py:1176", RAN, advice=lambda s: or_take("top-k 1", s),
    ),
    Rule(
        "rejection-algorithm", "reject",
        lambda s: s.algorithm == "STANDALONE" and s.on(n.REJECTION),
        lambda s: ("NotImplementedError: --speculative-use-rejection-sampling is only supported for EAGLE / EAGLE3 / "
                   f"NEXTN, not speculative_algorithm={s.algorithm}."), "R11 speculative_hook.py:1208", RAN,
        since="0.5.15",
    ),
    Rule(
        "rejection-topk", "reject", lambda s: s.eagle and s.on(n.REJECTION) and s.get(n.TOPK) != 1,
        "ValueError: --speculative-use-rejection-sampling requires --speculative-eagle-topk=1.",
        "R11 speculative_hook.py:1220", RAN, advice="top-k 1", since="0.5.15",
    ),
    Rule(
        "rejection-deterministic", "reject",
        lambda s: s.eagle and s.on(n.REJECTION) and s.on("enable-deterministic-inference")
        and not str(s.get("device")).startswith("cuda"),
        "ValueError: Deterministic rejection sampling is currently supported only on CUDA-compatible devices because "
        "draft proposal sampling uses a Triton hash kernel.", "speculative_hook.py:1224", READ, since="0.5.23",
    ),
    Rule(
        "rejection-thresholds", "reject",
        lambda s: s.eagle and s.on(n.REJECTION) and (s.get("speculative-accept-threshold-single") != 1.0
                                                     or s.get("speculative-accept-threshold-acc") != 1.0),
        "ValueError: --speculative-use-rejection-sampling is incompatible with --speculative-accept-threshold-single "
        "/ --speculative-accept-threshold-acc; rejection sampling ignores the accept thresholds.",
        "R11 speculative_hook.py:1230", RAN, advice="leave the thresholds out", since="0.5.15",
    ),
    Rule(
        "chain-tokens", "rewrite",
        lambda s: s.eagle and s.get(n.TOPK) == 1 and s.get(n.STEPS) is not None
        and s.get(n.DRAFT_TOKENS) != s.get(n.STEPS) + 1,
        "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1",
        "R3 speculative_hook.py:1255", RAN, sets=lambda s: {n.DRAFT_TOKENS: s.get(n.STEPS) + 1}, canonical=True,
    ),
    Rule(
        "topk-missing", "reject", lambda s: s.eagle and s.get(n.TOPK) is None,
        "TypeError: '>' not supported between instances of 'NoneType' and 'int'", "R2 speculative_hook.py:1274", RAN,
        advice="pass speculative-eagle-topk with speculative-num-steps",
    ),
    Rule(
        "topk-page", "reject", lambda s: s.eagle and paged_tree(s, n.PAGED_TREE),
        lambda s: ("ValueError: speculative_eagle_topk > 1 with page_size > 1 is only supported on "
                   f"{n.PAGED_TREE}; got attention_backend={s.get(n.ATTENTION)!r}. Use page_size == 1 or one of those "
                   "backends."), "R7 speculative_hook.py:1268", RAN,
        advice=lambda s: or_take(single_page(s), s),
    ),
)
# fmt: on
