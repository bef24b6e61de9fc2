"""What SGLang makes of S, K and N: which combinations die, which are rewritten, which are the same engine.

Facts were read in SGLang 0.5.23 and run through its own resolver; R-numbers name the rule there. S is
`speculative-num-steps`, K `speculative-eagle-topk`, N `speculative-num-draft-tokens`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectune.engines.protocol import Assignment, Illegal

ALGORITHM = "speculative-algorithm"
DRAFT_MODEL = "speculative-draft-model-path"
STEPS = "speculative-num-steps"
TOPK = "speculative-eagle-topk"
DRAFT_TOKENS = "speculative-num-draft-tokens"
ATTENTION_MODE = "speculative-attention-mode"
DRAFT_ATTENTION = "speculative-draft-attention-backend"

EAGLE_FAMILY = frozenset({"EAGLE", "EAGLE3", "STANDALONE"})
# Their multi-step draft or verify kernels take one branch only (R7).
CHAIN_ONLY_BACKENDS = frozenset({"trtllm_mha", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla", "flashmla"})
PAGED_TREE_BACKENDS = frozenset({"flashinfer", "fa3", "triton"})


def draft_token_bounds(num_steps: int, eagle_topk: int) -> tuple[int, int]:
    """Return the least and the greatest N that a draft of S steps with K branches can fill.

    A tree holds the root, K children of it and K² candidates in each later step, so 2 ≤ N ≤ 1 + K + (S−1)·K²
    (R5); for a chain (K = 1) SGLang rewrites N to S + 1 (R3).
    """
    if eagle_topk == 1:
        return num_steps + 1, num_steps + 1
    return 2, 1 + eagle_topk + (num_steps - 1) * eagle_topk**2


def algorithm_of(values: Mapping[str, Any]) -> str | None:
    """Return SGLang's own name of the algorithm, None without speculation."""
    name = str(values.get(ALGORITHM, "none"))
    if name.lower() == "none":
        return None
    upper = name.upper()
    return "EAGLE" if upper == "NEXTN" else upper


def fold(assignment: Assignment, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the assignment without what cannot make a difference, rewritten as SGLang rewrites it.

    Args:
        assignment: Values of the search space's parameters.
        fixed: Arguments that every launch shares.
    """
    values = dict(assignment)
    algorithm = algorithm_of(values)
    if algorithm is None:
        system = {name: value for name, value in values.items() if not name.startswith("speculative-")}
        return {ALGORITHM: "none", **_fold_graphs(system)}
    values[ALGORITHM] = algorithm
    if algorithm == "NGRAM":  # looks tokens up: no drafter; breadth and steps come from its own options
        for name in (DRAFT_MODEL, STEPS, TOPK):
            values.pop(name, None)
    elif algorithm in EAGLE_FAMILY and values.get(TOPK) == 1 and STEPS in values:
        values[DRAFT_TOKENS] = values[STEPS] + 1
    prefill, decode = attention_backends({**fixed, **values})
    if ATTENTION_MODE in values and prefill == decode:  # it only picks one of two different backends (§2.7)
        del values[ATTENTION_MODE]
    return _fold_graphs(values)


def _fold_graphs(values: dict[str, Any]) -> dict[str, Any]:
    if values.get("disable-decode-cuda-graph") is True or values.get("disable-cuda-graph") is True:
        for name in ("cuda-graph-bs-decode", "cuda-graph-max-bs-decode"):
            values.pop(name, None)
    if "cuda-graph-bs-decode" in values:  # the list decides, whatever the maximum says (§1.2)
        values.pop("cuda-graph-max-bs-decode", None)
    return values


def attention_backends(values: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the attention backends of prefill and decode; None where SGLang would choose."""
    common = values.get("attention-backend")
    return values.get("prefill-attention-backend", common), values.get("decode-attention-backend", common)


def illegality(values: Mapping[str, Any]) -> Illegal | None:
    """Say why SGLang refuses these arguments (fixed ones included) or dies of them; None when it does neither."""
    algorithm = algorithm_of(values)
    if algorithm is None:
        return _page_alignment(values)
    if int(values.get("pp-size", 1)) > 1:
        return Illegal("pipeline-parallelism", "speculation needs pp-size 1 on a single server (R10)")
    if algorithm == "STANDALONE" and int(values.get("attn-dp-size", 1)) > 1:
        return Illegal("standalone-dp", "STANDALONE does not run with attention data parallelism (R8)")
    if algorithm in EAGLE_FAMILY:
        broken = _tree(algorithm, values) or _tree_backends(values)
        if broken:
            return broken
    return _page_alignment(values)


def _tree(algorithm: str, values: Mapping[str, Any]) -> Illegal | None:
    steps, topk, tokens = values.get(STEPS), values.get(TOPK), values.get(DRAFT_TOKENS)
    if steps is None or topk is None or tokens is None:
        return Illegal(
            "incomplete-draft", f"{algorithm} needs {STEPS}, {TOPK} and {DRAFT_TOKENS} together (R1, R2, R4)"
        )
    if steps < 1 or topk < 1:
        return Illegal("tree-bounds", f"steps {steps} and top-k {topk} must both be at least 1 (R5)")
    least, most = draft_token_bounds(steps, topk)
    if not least <= tokens <= most:
        return Illegal(
            "tree-bounds", f"{tokens} draft tokens with {steps} steps and top-k {topk}: {least} to {most} (R5)"
        )
    return None


def _tree_backends(values: Mapping[str, Any]) -> Illegal | None:
    if values[TOPK] == 1:
        return None
    prefill, decode = attention_backends(values)
    for role, backend in (("prefill", prefill), ("decode", decode), ("draft", values.get(DRAFT_ATTENTION))):
        if backend in CHAIN_ONLY_BACKENDS:
            return Illegal("topk-backend", f"the {role} attention backend {backend} takes top-k 1 only (R7)")
    page = int(values.get("page-size") or 1)
    if page > 1 and not {prefill, decode} <= PAGED_TREE_BACKENDS:
        return Illegal("topk-page", f"top-k {values[TOPK]} with page size {page} needs flashinfer, fa3 or triton (R7)")
    return None


def _page_alignment(values: Mapping[str, Any]) -> Illegal | None:
    page, chunk = values.get("page-size"), values.get("chunked-prefill-size")
    if page and chunk and int(chunk) > 0 and int(chunk) % int(page):
        return Illegal("chunk-page", f"chunked-prefill-size {chunk} must be divisible by page-size {page} (R15)")
    return None


def nearest_legal(assignment: Assignment) -> Assignment:
    """Return the assignment with N moved to the nearest count its S and K can fill."""
    steps, topk, tokens = assignment.get(STEPS), assignment.get(TOPK), assignment.get(DRAFT_TOKENS)
    if algorithm_of(assignment) not in EAGLE_FAMILY or steps is None or topk is None or tokens is None:
        return assignment
    least, most = draft_token_bounds(steps, topk)
    return {**assignment, DRAFT_TOKENS: min(max(tokens, least), most)}
