"""The table, and what a search derives from it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.engines.parts import Illegal
from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.options import Options
from spectune.engines.sglang.rules import BY_NAME, RULES
from spectune.engines.sglang.rules.eagle import draft_token_bounds
from spectune.engines.sglang.rules.folding import Rulebook, nearest_legal
from spectune.engines.sglang.rules.names import ATTENTION_MODE, DRAFT_ATTENTION, DRAFT_TOKENS, STEPS, TOPK
from spectune.engines.sglang.versions.history import FIRST_VERSION, older_than

EAGLE = {
    "speculative-algorithm": "EAGLE3",
    "speculative-draft-model-path": "org/drafter",
    STEPS: 3,
    TOPK: 4,
    DRAFT_TOKENS: 8,
}
BACKENDS = ("triton", "flashinfer", "fa3", "fa4", "trtllm_mha", "flashmla", "torch_native")
small = st.integers(1, 12)
assignments = st.fixed_dictionaries(
    {"speculative-algorithm": st.sampled_from(["none", "EAGLE", "nextn", "EAGLE3", "STANDALONE", "NGRAM", "DFLASH"])},
    optional={
        STEPS: st.integers(0, 7),
        TOPK: st.sampled_from([1, 2, 4]),
        DRAFT_TOKENS: st.integers(1, 40),
        "speculative-draft-model-path": st.just("org/drafter"),
        DRAFT_ATTENTION: st.sampled_from(BACKENDS),
        ATTENTION_MODE: st.sampled_from(["prefill", "decode"]),
        "speculative-use-rejection-sampling": st.booleans(),
        "speculative-adaptive": st.booleans(),
        "attention-backend": st.sampled_from(BACKENDS),
        "prefill-attention-backend": st.sampled_from(BACKENDS),
        "decode-attention-backend": st.sampled_from(BACKENDS),
        "page-size": st.sampled_from([1, 16, 64, 100]),
        "chunked-prefill-size": st.sampled_from([1000, 8192]),
        "attn-dp-size": st.sampled_from([1, 2]),
        "pp-size": st.sampled_from([1, 2]),
        "context-length": st.sampled_from([4096, 2**20]),
        "max-running-requests": st.sampled_from([4, 1024]),
        "enable-mixed-chunk": st.booleans(),
        "disable-decode-cuda-graph": st.booleans(),
        "cuda-graph-bs-decode": st.sampled_from([(1, 2), (1, 2, 4)]),
        "env.NCCL_PROTO": st.sampled_from(["unset", "LL"]),
    },
)
BASE = {"model-path": "org/model", "tp-size": 8, "attention-backend": "triton", "page-size": 1}


def illegality(values: dict[str, Any]) -> Illegal | None:
    return Rulebook({})._judged(values, {}, Rulebook({})._target).illegal


def fold(values: dict[str, Any], **fixed: Any) -> dict[str, Any]:
    book = Rulebook(fixed)
    return dict(book._judged(values, book.base, book._target).items)


def canonical(book: Rulebook, values: dict[str, Any]) -> Illegal | dict[str, Any]:
    names = book.draft_names(values)
    draft = book.draft_part({name: value for name, value in values.items() if name in names})
    if draft.illegal is not None:
        return draft.illegal
    rest = book.rest_part(draft.key, {name: value for name, value in values.items() if name not in names})
    return rest.illegal or dict(draft.items + rest.items)


def test_every_rule_says_where_it_was_found_and_how_it_was_tested() -> None:
    assert len(RULES) > 80
    for rule in RULES:
        assert rule.source, rule.name
        assert rule.tested in {"resolver run", "launched", "read"}
        assert not older_than(rule.since, FIRST_VERSION)
        assert rule.name == rule.name.lower()


def test_every_argument_a_rule_drops_is_one_of_sglangs() -> None:
    known = Options.shipped().by_name
    dropped = {name for rule in RULES for name in rule.drops if not name.startswith("env.")}
    assert dropped
    for name in dropped:
        assert name in known or (name.endswith("*") and any(option.startswith(name[:-1]) for option in known)), name


@given(assignments)
def test_the_two_parts_together_say_what_the_whole_table_says(values: dict[str, Any]) -> None:
    book = Rulebook(BASE)
    whole = book._judged(values, book.base, book._target)
    found = canonical(book, values)
    if isinstance(found, Illegal):
        assert whole.illegal is not None
    else:
        assert whole.illegal is None
        assert found == dict(whole.items)


@given(assignments)
def test_folding_again_changes_nothing(values: dict[str, Any]) -> None:
    book = Rulebook(BASE)
    found = canonical(book, values)
    if not isinstance(found, Illegal):
        assert canonical(book, found) == found


def tree_size(steps: int, topk: int) -> int:
    """Nodes a draft can offer, counted step by step: the root, its children, then K children of the K best."""
    nodes = 1
    for step in range(steps):
        nodes += topk if step == 0 else topk * topk
    return nodes


@given(small, small)
def test_greatest_draft_is_every_node_of_the_tree(steps: int, topk: int) -> None:
    least, most = draft_token_bounds(steps, topk)
    assert most == tree_size(steps, topk)
    assert least == (steps + 1 if topk == 1 else 2)


@given(small, small, st.integers(-5, 400))
def test_nearest_legal_is_legal_and_leaves_legal_ones_alone(steps: int, topk: int, tokens: int) -> None:
    wanted = {**EAGLE, STEPS: steps, TOPK: topk, DRAFT_TOKENS: tokens}
    repaired = dict(nearest_legal(wanted))
    assert illegality(repaired) is None
    if topk > 1 and illegality(wanted) is None:
        assert repaired == wanted


@given(small, st.integers(2, 99))
def test_a_chain_is_one_candidate_whatever_n_says(steps: int, tokens: int) -> None:
    chain = {**EAGLE, STEPS: steps, TOPK: 1}
    assert fold({**chain, DRAFT_TOKENS: tokens}) == fold(chain)


@pytest.mark.parametrize("name", ["NEXTN", "nextn", "eagle"])
def test_nextn_is_eagle_in_any_case(name: str) -> None:
    assert fold({**EAGLE, "speculative-algorithm": name})["speculative-algorithm"] == "EAGLE"


def test_without_speculation_draft_parameters_fall_away() -> None:
    folded = fold({**EAGLE, "speculative-algorithm": "none", "env.NCCL_PROTO": "LL"})
    assert folded == {"speculative-algorithm": "none", "env.NCCL_PROTO": "LL"}


@pytest.mark.parametrize(
    ("fixed", "kept"),
    [
        ({"attention-backend": "triton"}, False),
        ({"attention-backend": "triton", "prefill-attention-backend": "flashinfer"}, True),
        ({"prefill-attention-backend": "fa3", "decode-attention-backend": "fa3"}, False),
        ({"attention-backend": "aiter"}, True),
        ({}, True),
    ],
)
def test_attention_mode_matters_only_between_two_backends(fixed: dict[str, str], kept: bool) -> None:
    assert (ATTENTION_MODE in fold({**EAGLE, ATTENTION_MODE: "decode"}, **fixed)) is kept


@pytest.mark.parametrize(
    ("values", "gone"),
    [
        ({"disable-decode-cuda-graph": True, "cuda-graph-bs-decode": (1, 2)}, "cuda-graph-bs-decode"),
        ({"cuda-graph-bs-decode": (1, 2), "cuda-graph-max-bs-decode": 64}, "cuda-graph-max-bs-decode"),
        ({"speculative-draft-model-revision": "main"}, "speculative-draft-model-revision"),
        ({"speculative-token-map": "map.pt"}, "speculative-token-map"),
        ({"speculative-algorithm": "NGRAM"}, "speculative-draft-model-path"),
        ({"speculative-algorithm": "NGRAM", "enable-mixed-chunk": True}, "enable-mixed-chunk"),
    ],
)
def test_what_makes_no_difference_falls_away(values: dict[str, Any], gone: str) -> None:
    given = {**EAGLE, **values}
    assert gone in given
    assert gone not in fold(given)


def test_a_page_size_that_the_backend_changes_is_written_as_changed() -> None:
    chain = {**EAGLE, TOPK: 1, DRAFT_TOKENS: 4, "attention-backend": "trtllm_mha"}
    assert fold({**chain, "page-size": 1}) == fold({**chain, "page-size": 64})
    assert fold({**chain, "page-size": 32})["page-size"] == 32


@pytest.mark.parametrize("algorithm", ["DFLASH", "DSPARK", "UNO", "FROZEN_KV_MTP", "my_plugin"])
def test_other_algorithms_pass_through_as_written(algorithm: str) -> None:
    values = {**EAGLE, "speculative-algorithm": algorithm, TOPK: 1, DRAFT_TOKENS: 77, "page-size": 16}
    assert canonical(Rulebook(BASE), values) == values


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({DRAFT_TOKENS: 64, STEPS: 2}, "tree-bounds"),
        ({DRAFT_TOKENS: 1}, "tree-bounds"),
        ({STEPS: 0}, "tree-bounds"),
        ({STEPS: -1, TOPK: 1}, "tree-bounds"),
        ({STEPS: 0, TOPK: 1}, "nothing-drafted"),
        ({TOPK: 0}, "tree-bounds"),
        ({STEPS: None}, "incomplete-draft"),
        ({TOPK: None}, "incomplete-draft"),
        ({DRAFT_TOKENS: None}, "incomplete-draft"),
        ({"decode-attention-backend": "trtllm_mha"}, "topk-trtllm-mha"),
        ({"prefill-attention-backend": "trtllm_mha"}, "topk-trtllm-mha"),
        ({"prefill-attention-backend": "flashmla", "attention-backend": "fa3"}, "topk-backend"),
        ({DRAFT_ATTENTION: "trtllm_mha", "attention-backend": "fa3"}, "topk-backend"),
        ({DRAFT_ATTENTION: "torch_native", "attention-backend": "fa3"}, "draft-backend"),
        ({"attention-backend": "fa4", "page-size": 16}, "topk-page"),
        ({"attention-backend": "fa3", "prefill-attention-backend": "fa4", "page-size": 16}, "topk-page-split"),
        ({"page-size": 3, "attention-backend": "fa3", "chunked-prefill-size": 100}, "chunk-page"),
        ({"pp-size": 2}, "pipeline-parallelism"),
        ({"pp-size": 2, "speculative-algorithm": "EAGLE"}, "pipeline-parallelism-prefill"),
        ({"speculative-algorithm": "STANDALONE", "attn-dp-size": 2, "tp-size": 2}, "standalone-dp"),
        ({"speculative-algorithm": "NGRAM", "attn-dp-size": 2, "tp-size": 2}, "ngram-dp"),
        ({"speculative-algorithm": "NGRAM", "page-size": 16, "attention-backend": "triton"}, "ngram-page"),
        ({"attn-dp-size": 3, "tp-size": 8}, "attention-dp-divides"),
        ({"speculative-use-rejection-sampling": True}, "rejection-topk"),
        ({"attention-backend": "flex_attention"}, "flex-attention"),
        ({"attention-backend": "triton", "context-length": 2**20, "max-running-requests": 1024}, "offset-overflow"),
    ],
)
def test_what_sglang_refuses_or_dies_of(change: dict[str, object], rule: str) -> None:
    values = {name: value for name, value in {**EAGLE, **change}.items() if value is not None}
    broken = illegality(values)
    assert broken is not None
    assert broken.rule == rule
    assert BY_NAME[rule].excludes
    assert BY_NAME[rule].source in broken.reason


def test_the_same_backends_are_fine_for_a_chain() -> None:
    chain = {**EAGLE, TOPK: 1, DRAFT_TOKENS: 4, "attention-backend": "trtllm_mha", "page-size": 64}
    assert illegality(chain) is None


@pytest.mark.parametrize(
    ("version", "rule"), [("0.5.13", "no-steps"), ("0.5.14", "nothing-drafted"), ("0.5.23", "nothing-drafted")]
)
def test_a_chain_of_no_steps_is_never_launched(version: str, rule: str) -> None:
    values = {**EAGLE, STEPS: 0, TOPK: 1, DRAFT_TOKENS: 5}
    found = canonical(Rulebook(BASE, version=version), values)
    assert isinstance(found, Illegal)
    assert found.rule == rule


@pytest.mark.parametrize("algorithm", ["STANDALONE", "NGRAM"])
@pytest.mark.parametrize("version", ["0.5.21", "0.5.23"])
@pytest.mark.parametrize("given", [{"attn-dp-size": 4}, {"dp-size": 4, "enable-dp-attention": True}])
def test_attention_data_parallelism_is_seen_in_both_spellings(
    algorithm: str, version: str, given: dict[str, Any]
) -> None:
    found = canonical(Rulebook(BASE, version=version), {**EAGLE, "speculative-algorithm": algorithm, **given})
    assert isinstance(found, Illegal)
    assert found.rule in {"standalone-dp", "ngram-dp"}


def test_attention_data_parallelism_of_one_group_is_none() -> None:
    assert fold({**EAGLE, "enable-dp-attention": True}) == fold({**EAGLE, "enable-dp-attention": False}) == fold(EAGLE)
    replicas = {**EAGLE, "dp-size": 4}
    assert fold({**replicas, "enable-dp-attention": True}) != fold({**replicas, "enable-dp-attention": False})


def test_a_split_backend_of_a_model_that_names_its_own_is_not_refused() -> None:
    """Without the common backend, SGLang puts its choice for the model there."""
    llama4 = Model.from_config({"architectures": ["Llama4ForCausalLM"]})
    book = Rulebook({**BASE, "attention-backend": None}, model_of=lambda _: llama4)
    split = {"prefill-attention-backend": "fa3", "decode-attention-backend": "triton"}
    assert not isinstance(canonical(book, {**EAGLE, **split}), Illegal)


def test_adaptive_speculation_couples_steps_to_everything() -> None:
    names = {STEPS, "speculative-adaptive", "page-size"}
    assert Rulebook({}).draft_names(names) == names
    assert Rulebook({}).draft_names({STEPS, "page-size"}) == {STEPS}


def test_a_rule_is_known_for_a_range_of_versions() -> None:
    rule = BY_NAME["overlap-off-before-spec-v2"]
    assert rule.holds_in("0.5.10")
    assert not rule.holds_in("0.5.23")
    assert BY_NAME["adaptive-start"].holds_in("0.5.24.dev3")
    assert not BY_NAME["adaptive-start"].holds_in("0.5.6")


@pytest.mark.parametrize(("tokens", "rule"), [(2, "tree-below-steps"), (5, "tree-below-steps"), (6, None)])
def test_a_tree_holds_a_path_of_all_steps(tokens: int, rule: str | None) -> None:
    """Launched on 0.5.23: below S + 1 draft tokens SGLang dies at the first verify of a tree."""
    broken = illegality({**EAGLE, STEPS: 5, TOPK: 4, DRAFT_TOKENS: tokens})
    assert (None if broken is None else broken.rule) == rule


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"speculative-ngram-capacity": 9, "speculative-dflash-block-size": 8}, EAGLE),
        ({"env.SGLANG_ENABLE_SPEC_V2": "1"}, EAGLE),
        ({"env.SGLANG_ENABLE_SPEC_V2": "unset"}, EAGLE),
        (
            {"speculative-algorithm": "NGRAM", "speculative-ngram-capacity": 9, "speculative-draft-window-size": 512},
            {"speculative-algorithm": "NGRAM", "speculative-ngram-capacity": 9, DRAFT_TOKENS: 8},
        ),
    ],
)
def test_what_an_algorithm_does_not_read_makes_no_candidates(given: dict[str, Any], left: dict[str, Any]) -> None:
    book = Rulebook(BASE)
    values = {**EAGLE, **given}
    names = book.draft_names(values)
    draft = book.draft_part({name: value for name, value in values.items() if name in names})
    rest = book.rest_part(draft.key, {name: value for name, value in values.items() if name not in names})
    assert dict(draft.items) | dict(rest.items) == left


def test_an_older_sglang_reads_its_overlap_variable() -> None:
    book = Rulebook(BASE, version="0.5.10")
    assert dict(book.rest_part(("EAGLE3", 4, False), {"env.SGLANG_ENABLE_SPEC_V2": "1"}).items)
