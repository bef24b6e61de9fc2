"""What a launch is chosen for: the mean of the objectives, their front, or the end of the search."""

from __future__ import annotations

import math

import numpy as np
import pytest
from guided_world import engine, search, space

from spectune.search.guided.acquisition import area_gains, expected_improvement, sureness
from spectune.search.guided.choosing import (
    LIKELY,
    WORSE,
    at_the_front,
    contenders,
    drawn,
    leader,
    promising,
    shortlist,
    unsettled,
)
from spectune.search.guided.evidence import evidence_of
from spectune.search.guided.guide import Guide
from spectune.search.guided.landscape import Landscape
from spectune.search.guided.stopping import outlook
from spectune.search.guided.teaching import SMALL_TREE, first_tree
from spectune.search.guided.wording import compared

EVEN = np.array([0.5, 0.5])


@pytest.fixture(scope="module")
def known() -> tuple[Landscape, np.ndarray, list[int]]:
    """Beliefs after eight launches, what was not tried, and what was."""
    at = space()
    evidence = evidence_of(search(at, 8), at)
    guide = Guide(at, engine(at))
    beliefs = guide.beliefs.openly(evidence)
    tried = [number for item in evidence if (number := guide.chart.table.number(item.candidate)) is not None]
    untried = guide.chart.table.allowed.copy()
    untried[tried] = False
    return beliefs, untried, tried


def test_the_front_is_enlarged_more_than_by_the_best_mean(known: tuple[Landscape, np.ndarray, list[int]]) -> None:
    beliefs, untried, tried = known
    front = beliefs.means[:2, tried].T
    chosen = at_the_front(beliefs, untried, tried, np.random.default_rng(0))
    mean = promising(beliefs, untried, tried, EVEN)
    points = beliefs.means[:2, [chosen.number, mean.number]].T
    gains = area_gains(points, front, front[0] - WORSE)
    assert untried[chosen.number]
    assert beliefs.feasible[chosen.number] > LIKELY
    assert gains[0] >= gains[1] - 1e-12
    assert chosen.gain >= 0.0


def test_what_is_unsettled_is_likeliest_to_be_better(known: tuple[Landscape, np.ndarray, list[int]]) -> None:
    beliefs, untried, tried = known
    goal = float(beliefs.score[tried].max()) + math.log1p(0.01)
    among = contenders(beliefs, untried, beliefs.score, goal, 2.0)
    chosen = unsettled(beliefs, untried, tried, EVEN, math.log1p(0.01), 2.0)
    assert untried[among].all()
    assert chosen.number in among
    assert 0.0 <= chosen.gain <= 1.0, "a probability"


def test_what_a_candidate_shares_with_the_best_is_no_reason_to_hope(
    known: tuple[Landscape, np.ndarray, list[int]],
) -> None:
    beliefs, untried, tried = known
    best = leader(beliefs.score, tried)
    chosen = promising(beliefs, untried, tried, EVEN)
    apart = beliefs.deviations_from(np.array([chosen.number]), best)
    assert chosen.better == pytest.approx(float(beliefs.score[chosen.number] - beliefs.score[best]))
    assert chosen.sure == pytest.approx(float(sureness(np.array(chosen.better), apart, 0.0)[0]))
    assert beliefs.deviations_from(np.array([best]), best)[0] == pytest.approx(0.0, abs=1e-6), "its own copy"
    assert leader(beliefs.score, []) == int(np.argmax(beliefs.score)), "nothing was tried"


def test_the_candidates_looked_at_gain_more_than_most_others(known: tuple[Landscape, np.ndarray, list[int]]) -> None:
    beliefs, untried, tried = known
    best = leader(beliefs.score, tried)
    numbers = shortlist(beliefs, untried, beliefs.score, best)
    others = np.setdiff1d(np.flatnonzero(untried), numbers)
    assert untried[numbers].all()
    assert len(others), "the space is larger than the list"
    gains = [
        expected_improvement(beliefs.score[some] - beliefs.score[best], beliefs.deviations_from(some, best), 0.0)
        * beliefs.feasible[some]
        for some in (numbers, others)
    ]
    assert np.median(gains[0]) > np.quantile(gains[1], 0.9)


def test_the_first_tree_is_small_and_tells_of_what_surrounds_it_too() -> None:
    at = space()
    records = search(at, 3)
    guide = Guide(at, engine(at))
    evidence = evidence_of(records, at)
    beliefs, chart = guide.beliefs.openly(evidence), guide.chart
    tried = [number for item in evidence if (number := chart.table.number(item.candidate)) is not None]
    untried = chart.table.allowed.copy()
    untried[tried] = False
    advice = first_tree(at, beliefs, evidence, untried, tried)
    assert advice is not None
    tree = chart.setting(advice.candidate)
    assert tree.topk > 1
    assert tree.tokens <= SMALL_TREE * (tree.steps + 1)
    surroundings = "cuda-graph-bs-decode", "env.NCCL_PROTO"
    seen = {tuple(item.candidate.values[name] for name in surroundings) for item in evidence}
    assert tuple(advice.candidate.values[name] for name in surroundings) not in seen


def test_what_is_left_is_at_least_what_one_candidate_may_bring(known: tuple[Landscape, np.ndarray, list[int]]) -> None:
    beliefs, untried, tried = known
    best = tried[int(np.argmax(beliefs.score[tried]))]
    numbers = np.flatnonzero(untried)
    found = outlook(beliefs, numbers, np.array([best]), 1.0)
    spread = beliefs.deviations_from(numbers, best)
    alone = sureness(beliefs.score[numbers], spread, float(beliefs.score[best]) + math.log1p(0.01))
    assert found.chance >= float((alone * beliefs.feasible[numbers]).max()) - 0.06, "of 400 draws"
    assert found.gain > 0.0
    among = outlook(beliefs, numbers, np.array(tried), 1.0)
    assert among.chance <= found.chance + 0.06, "more finalists are harder to beat"
    assert among.open <= len(numbers)


def test_draws_differ_and_are_good(known: tuple[Landscape, np.ndarray, list[int]]) -> None:
    beliefs, untried, tried = known
    found = [drawn(beliefs, untried, tried, np.random.default_rng(seed)) for seed in range(20)]
    numbers = [promise.number for promise in found]
    assert untried[numbers].all()
    assert len(set(numbers)) > 1
    assert np.mean(beliefs.score[numbers]) > np.mean(beliefs.score[untried])
    assert numbers[0] == drawn(beliefs, untried, tried, np.random.default_rng(0)).number


def test_every_launch_says_what_it_is_for(known: tuple[Landscape, np.ndarray, list[int]]) -> None:
    beliefs, untried, tried = known
    at, rng = space(), np.random.default_rng(0)
    front = at_the_front(beliefs, untried, tried, rng)
    counts = f"{at.objectives[int(np.argmax(front.weights))].name} counting {front.weights.max():.0%}"
    for found, aim in (
        (promising(beliefs, untried, tried, EVEN), "the most to gain by the mean of the objectives: "),
        (drawn(beliefs, untried, tried, rng), "to look beyond the best prediction, "),
        (front, f"for the Pareto front, with {counts}: expected decode_speed@c1 "),
        (unsettled(beliefs, untried, tried, EVEN, 0.01, 2.0), "to see whether the search is over, the likeliest left "),
    ):
        told = compared(at, beliefs, found)
        assert told.startswith(aim)
        assert told.endswith(f"% against the best so far, {found.sure:.0%} likely better")
