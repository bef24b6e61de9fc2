"""The law of trees: what it must hold whatever the drafter, and the same law written out node by node."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.engines.draft_trees import Branching, chain_lengths, children, tree_lengths, tree_survival

probabilities = st.floats(0.02, 0.98)
shapes = st.lists(probabilities, min_size=1, max_size=6).map(tuple)
breadths, confidences, widths = st.floats(0.05, 1.0), st.floats(0.1, 1.0), st.sampled_from([2, 4, 8])
branchings = st.builds(Branching, breadths, st.one_of(st.just(1.0), confidences))


@given(shapes, widths, breadths)
def test_trees_grow_with_steps_and_tokens_and_are_bounded(chain: tuple[float, ...], topk: int, breadth: float) -> None:
    lengths = tree_lengths(chain, topk, Branching(breadth), 24)
    assert (np.diff(lengths[1:, 2:], axis=1) >= -1e-12).all()
    assert (np.diff(lengths[:, 2:], axis=0) >= -1e-9).all()
    for steps in range(1, len(chain) + 1):
        assert (lengths[steps] <= steps + 1 + 1e-9).all()
        assert lengths[steps, -1] >= chain_lengths(chain)[min(steps, 1)] - 1e-9


@given(shapes, widths, breadths, confidences)
def test_an_unsure_drafter_keeps_no_better_nodes(
    chain: tuple[float, ...], topk: int, breadth: float, confidence: float
) -> None:
    sure, unsure = (tree_lengths(chain, topk, Branching(breadth, k), 24) for k in (1.0, confidence))
    assert (unsure <= sure + 1e-9).all()
    assert (np.diff(unsure[1:, 2:], axis=1) >= -1e-12).all(), "more tokens never accept less"


def test_a_sure_drafter_keeps_the_chain_and_an_unsure_one_siblings() -> None:
    chain = (0.8,) * 5
    sure, unsure = (tree_lengths(chain, 3, Branching(0.3, k), 6)[5, 6] for k in (1.0, 0.4))
    assert sure == pytest.approx(chain_lengths(chain)[5])
    assert unsure < 0.9 * sure


@given(shapes, widths, branchings, st.integers(2, 40))
def test_survival_is_the_length_depth_by_depth(
    chain: tuple[float, ...], topk: int, branching: Branching, tokens: int
) -> None:
    survivals = tree_survival(chain, topk, branching, tokens)
    assert len(survivals) == len(chain)
    assert 1.0 + sum(survivals) == pytest.approx(tree_lengths(chain, topk, branching, 40)[len(chain), tokens])
    assert all(left >= right - 1e-12 for left, right in itertools.pairwise((1.0, *survivals)))


def test_no_step_drafts_nothing() -> None:
    assert tree_survival((), 4, Branching(0.3), 8) == ()


@given(shapes, widths, branchings, st.integers(2, 40))
def test_it_is_the_law_of_the_page_node_by_node(
    chain: tuple[float, ...], topk: int, branching: Branching, tokens: int
) -> None:
    assert sum(tree_survival(chain, topk, branching, tokens)) == pytest.approx(
        written_out(chain, topk, branching, tokens)
    )


@given(st.floats(0.0, 0.98), st.integers(1, 8), branchings)
def test_ranked_children_share_one_probability(probability: float, topk: int, branching: Branching) -> None:
    right, seeming = (values.tolist() for values in children(probability, topk, branching))
    assert right[0] == pytest.approx(probability)
    for values in (right, seeming):
        assert sum(values) <= 1.0 + 1e-12
        assert all(left >= right - 1e-12 for left, right in itertools.pairwise(values))


def written_out(chain: tuple[float, ...], topk: int, branching: Branching, tokens: int) -> float:
    """The page's law with a list of nodes: (−seems, depth, rank, is right), alike ones by depth and rank."""
    beta, kappa = branching.breadth, branching.confidence
    parents, drafted = [(1.0, 1.0)], []
    for depth, a in enumerate(chain):
        right = [(1 - a) ** ((r - 1) ** beta) - (1 - a) ** (r**beta) for r in range(1, topk + 1)]
        weights = [p**kappa for p in right]
        rest = (1 - a) ** (kappa * topk**beta)
        seems = right if kappa == 1.0 else [weight / (sum(weights) + rest) for weight in weights]
        nodes = [
            (-(seeming * seems[rank]), depth, rank, product * right[rank])
            for rank in range(topk)
            for seeming, product in parents
        ]
        drafted += nodes
        parents = [(-node[0], node[3]) for node in sorted(nodes, key=lambda node: node[:3])[:topk]]
    kept = sorted(drafted, key=lambda node: node[:3])[: tokens - 1]
    return sum(node[3] for node in kept)
