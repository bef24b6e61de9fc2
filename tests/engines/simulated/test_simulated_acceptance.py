"""Chains and trees: properties that hold whatever the numbers."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_samples import a_launch, a_setup

from spectune.engines.draft_trees import Branching
from spectune.engines.simulated.acceptance import accept_length, branching_of, position_probabilities, survival
from spectune.engines.simulated.profile_schema import AcceptanceTable

PROBABILITY = st.floats(0.0, 0.98)
PROBABILITIES = st.lists(PROBABILITY, min_size=1, max_size=7)
BREADTH = st.floats(0.1, 1.0)


def tau(probabilities: list[float], topk: int, tokens: int, breadth: float = 0.35) -> float:
    setup = a_setup(len(probabilities), topk, tokens)
    return accept_length(survival(setup, probabilities, Branching(breadth)))


@given(PROBABILITY, st.integers(1, 15))
def test_a_chain_is_the_closed_form(probability: float, steps: int) -> None:
    expected = (1 - probability ** (steps + 1)) / (1 - probability)
    assert tau([probability] * steps, 1, steps + 1) == pytest.approx(expected)


@given(PROBABILITIES, st.integers(1, 8), st.integers(2, 40), BREADTH)
def test_accept_length_is_between_1_and_s_plus_1(
    probabilities: list[float], topk: int, tokens: int, breadth: float
) -> None:
    assert 1.0 <= tau(probabilities, topk, tokens, breadth) <= len(probabilities) + 1


@given(PROBABILITIES, st.integers(2, 8), st.integers(2, 40), BREADTH)
def test_more_tokens_never_accept_less(probabilities: list[float], topk: int, tokens: int, breadth: float) -> None:
    assert tau(probabilities, topk, tokens + 1, breadth) >= tau(probabilities, topk, tokens, breadth) - 1e-12


@given(PROBABILITIES, st.integers(2, 8), BREADTH)
def test_a_tree_with_room_for_the_chain_accepts_no_less(probabilities: list[float], topk: int, breadth: float) -> None:
    chain = tau(probabilities, 1, len(probabilities) + 1)
    assert tau(probabilities, topk, len(probabilities) + 1, breadth) >= chain - 1e-12


@given(PROBABILITIES, st.integers(1, 4), st.integers(2, 20))
def test_survival_never_rises_with_depth(probabilities: list[float], topk: int, tokens: int) -> None:
    survivals = survival(a_setup(len(probabilities), topk, tokens), probabilities, Branching(0.35))
    assert all(left >= right - 1e-12 for left, right in itertools.pairwise((1.0, *survivals)))


def test_a_tree_by_hand() -> None:
    """S=2, K=2, N=4: the root's two children and the better one's first child are kept."""
    a, b, beta = 0.6, 0.5, 0.35
    second = (1 - a) - (1 - a) ** (2**beta)
    assert tau([a, b], 2, 4) == pytest.approx(1 + a + a * b + max(second, a * ((1 - b) - (1 - b) ** (2**beta))))


def test_only_the_k_best_nodes_grow() -> None:
    """S=3, K=2: depth 3 has 4 nodes, so 2 + 4 + 4 nodes in all and nothing more to keep."""
    assert tau([0.9, 0.9, 0.9], 2, 11) == tau([0.9, 0.9, 0.9], 2, 40)
    assert tau([0.9, 0.9, 0.9], 2, 11) > tau([0.9, 0.9, 0.9], 2, 10)


def test_classes_drafters_and_context() -> None:
    table = AcceptanceTable.model_validate(
        {
            "default": [0.8, 0.4],
            "drafters": {"good": [0.95]},
            "by_class": {"code": 1.1, "random": 0.25},
            "context_halving_ktokens": 8,
        }
    )
    assert position_probabilities(table, None, None, 0, 4) == (0.8, 0.4, 0.4, 0.4)
    assert position_probabilities(table, "good", "code", 0, 2) == (0.98, 0.98)
    assert position_probabilities(table, "unknown", "unknown", 0, 1) == (0.8,)
    assert position_probabilities(table, None, "random", 8000, 1) == pytest.approx((0.1,))


def test_the_built_in_mix_is_a_third_each() -> None:
    launch = a_launch(a_setup(3), acceptance={"by_class": {"code": 1.3, "chat": 1.0, "math": 0.5}})
    each = [launch.accept_length(name, 0) for name in ("code", "chat", "math")]
    assert launch.accept_length("builtin:mixed", 0) == pytest.approx(sum(each) / 3)
    assert launch.accept_length(None, 0) == launch.accept_length("chat", 0)
    assert launch.warnings("poetry") == ["the profile does not know the prompt class 'poetry' and takes the factor 1.0"]


def test_block_drafts_are_chains() -> None:
    setup = a_setup(1, 1, 8, speculative_algorithm="DFLASH")
    assert setup.depth == 7
    assert a_launch(setup).accept_length(None, 0) > 2


@pytest.mark.parametrize("tokens", [2, 5, 12])
def test_a_lookup_drafts_all_it_verifies_in_fewer_steps_than_branches_too(tokens: int) -> None:
    """SGLang gives NGRAM N // K steps: 0 of 2 tokens and the default breadth of 10."""
    fields = {"num_steps": tokens // 10, "eagle_topk": 10, "num_draft_tokens": tokens}
    setup = a_setup(speculative_algorithm="NGRAM", **{f"speculative_{name}": value for name, value in fields.items()})
    assert setup.depth == tokens - 1
    assert 1.0 < a_launch(setup).accept_length(None, 0) < tokens


def test_each_drafter_has_its_own_trees_or_those_of_all() -> None:
    table = AcceptanceTable.model_validate(
        {
            "default": [0.8],
            "drafters": {"unsure": [0.8], "broad": [0.8], "plain": [0.8]},
            "confidence": 0.5,
            "trees": {"unsure": {"confidence": 0.3}, "broad": {"breadth": 0.6}},
        }
    )
    found = {name: branching_of(table, name) for name in ("unsure", "broad", "plain", "unknown", None)}
    assert found["unsure"] == Branching(0.35, 0.3)
    assert found["broad"] == Branching(0.6, 0.5)
    assert found["plain"] == found["unknown"] == found[None] == Branching(0.35, 0.5)


def test_a_launch_draws_its_drafter_s_trees() -> None:
    acceptance = {"default": [0.85], "drafters": {"d": [0.85]}, "trees": {"d": {"confidence": 0.4}}}
    sure, unsure = (
        a_launch(a_setup(5, 4, 6, speculative_draft_model_path=name), acceptance=acceptance).accept_length(None, 0)
        for name in ("e", "d")
    )
    assert unsure < 0.9 * sure
    chain = a_launch(a_setup(5, 1, 6, speculative_draft_model_path="d"), acceptance=acceptance)
    assert chain.accept_length(None, 0) == pytest.approx(sure)
