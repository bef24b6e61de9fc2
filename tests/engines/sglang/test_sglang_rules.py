"""S, K, N and their friends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.engines.sglang import rules

EAGLE = {
    "speculative-algorithm": "EAGLE3",
    "speculative-draft-model-path": "org/drafter",
    "speculative-num-steps": 3,
    "speculative-eagle-topk": 4,
    "speculative-num-draft-tokens": 8,
}
small = st.integers(1, 12)


def tree_size(steps: int, topk: int) -> int:
    """Nodes a draft can offer, counted step by step: the root, its children, then K children of the K best."""
    nodes = 1
    for step in range(steps):
        nodes += topk if step == 0 else topk * topk
    return nodes


@given(small, small)
def test_greatest_draft_is_every_node_of_the_tree(steps: int, topk: int) -> None:
    least, most = rules.draft_token_bounds(steps, topk)
    assert most == tree_size(steps, topk)
    assert least == (steps + 1 if topk == 1 else 2)


@given(small, small, st.integers(-5, 400))
def test_nearest_legal_is_legal_and_leaves_legal_ones_alone(steps: int, topk: int, tokens: int) -> None:
    wanted = {**EAGLE, rules.STEPS: steps, rules.TOPK: topk, rules.DRAFT_TOKENS: tokens}
    repaired = dict(rules.nearest_legal(wanted))
    assert rules.illegality(repaired) is None
    if rules.illegality(wanted) is None:
        assert repaired == wanted


@given(small, st.integers(2, 99))
def test_a_chain_is_one_candidate_whatever_n_says(steps: int, tokens: int) -> None:
    chain = {**EAGLE, rules.STEPS: steps, rules.TOPK: 1}
    assert rules.fold({**chain, rules.DRAFT_TOKENS: tokens}, {}) == rules.fold(chain, {})


def test_nextn_is_eagle() -> None:
    assert rules.fold({**EAGLE, "speculative-algorithm": "nextn"}, {})["speculative-algorithm"] == "EAGLE"


def test_without_speculation_draft_parameters_fall_away() -> None:
    folded = rules.fold({**EAGLE, "speculative-algorithm": "none", "env.NCCL_PROTO": "LL"}, {})
    assert folded == {"speculative-algorithm": "none", "env.NCCL_PROTO": "LL"}


@pytest.mark.parametrize(
    ("fixed", "kept"),
    [
        ({"attention-backend": "triton"}, False),
        ({"attention-backend": "triton", "prefill-attention-backend": "flashinfer"}, True),
        ({"prefill-attention-backend": "fa3", "decode-attention-backend": "fa3"}, False),
    ],
)
def test_attention_mode_matters_only_between_two_backends(fixed: dict[str, str], kept: bool) -> None:
    folded = rules.fold({**EAGLE, rules.ATTENTION_MODE: "decode"}, fixed)
    assert (rules.ATTENTION_MODE in folded) is kept


def test_batch_sizes_do_not_matter_without_graphs() -> None:
    folded = rules.fold({**EAGLE, "disable-decode-cuda-graph": True, "cuda-graph-bs-decode": (1, 2)}, {})
    assert "cuda-graph-bs-decode" not in folded


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({rules.DRAFT_TOKENS: 64, rules.STEPS: 2}, "tree-bounds"),
        ({rules.DRAFT_TOKENS: 1}, "tree-bounds"),
        ({rules.STEPS: 0}, "tree-bounds"),
        ({"decode-attention-backend": "trtllm_mha"}, "topk-backend"),
        ({"prefill-attention-backend": "flashmla"}, "topk-backend"),
        ({rules.DRAFT_ATTENTION: "trtllm_mha"}, "topk-backend"),
        ({"attention-backend": "fa4", "page-size": 16}, "topk-page"),
        ({"page-size": 3, "attention-backend": "fa3", "chunked-prefill-size": 100}, "chunk-page"),
        ({"pp-size": 2}, "pipeline-parallelism"),
        ({"speculative-algorithm": "STANDALONE", "attn-dp-size": 2}, "standalone-dp"),
    ],
)
def test_what_sglang_refuses_or_dies_of(change: dict[str, object], rule: str) -> None:
    broken = rules.illegality({**EAGLE, **change})
    assert broken is not None
    assert broken.rule == rule


@pytest.mark.parametrize("missing", [rules.STEPS, rules.TOPK, rules.DRAFT_TOKENS])
def test_a_draft_needs_all_three_numbers(missing: str) -> None:
    broken = rules.illegality({name: value for name, value in EAGLE.items() if name != missing})
    assert broken is not None
    assert broken.rule == "incomplete-draft"


def test_the_same_backends_are_fine_for_a_chain() -> None:
    chain = {**EAGLE, rules.TOPK: 1, rules.DRAFT_TOKENS: 4, "attention-backend": "trtllm_mha", "page-size": 64}
    assert rules.illegality(chain) is None
