"""Which of all candidates promises most: to the mean of the objectives, to their front, or to an end of the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from spectune.search.guided.acquisition import area_gains, expected_improvement, sureness
from spectune.search.guided.landscape import Landscape

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

SHORTLIST = 400
RUNS = 0.3  # chance to run of what is launched, at least, as long as there is any such candidate
LIKELY = 0.5  # chance to run of what is launched for what it teaches, or for the front, at least
FAILURE_COST = 0.05  # of a drawn score, for the chance to fail
WORSE = 0.1  # of the logarithm of an objective: as far below the baseline a candidate may still be one to choose
LEADING = 10  # candidates of each mixture that are looked at
MIXTURES = np.linspace(0.05, 0.95, 19)  # of two objectives: what the first counts


class Aim(Enum):
    """What a launch is for."""

    GAIN = auto()
    """To outdo the best so far."""
    DRAW = auto()
    """To look beyond the best prediction."""
    FRONT = auto()
    """To add to the front of the objectives."""
    END = auto()
    """To see whether the search is over."""


@dataclass(frozen=True)
class Promise:
    """A candidate and what its launch promises.

    Attributes:
        aim: What it is for.
        number: Of the candidate.
        weights: How much each objective counted.
        gain: What it is expected to add, failures adding nothing: to the weighted log objectives; to the area of a
            front, as a share of it; or the chance that it is better than all others.
        better: Expected log improvement on the best so far, negative where it is likelier worse.
        sure: Probability of any improvement.
    """

    aim: Aim
    number: int
    weights: Floats
    gain: float
    better: float
    sure: float


def promising(beliefs: Landscape, untried: Booleans, tried: Sequence[int], weights: Floats) -> Promise:
    """Return the untried candidate with the greatest expected improvement on the best tried one.

    Args:
        beliefs: Of all candidates.
        untried: Which may be chosen.
        tried: Numbers of what was measured.
        weights: How much each objective counts, 1 together.
    """
    goals = weights @ beliefs.means[: beliefs.goals]
    best = leader(goals, tried)
    numbers = shortlist(beliefs, untried, goals, best)
    better, deviations = goals[numbers] - goals[best], beliefs.deviations_from(numbers, best)
    gains = expected_improvement(better, deviations, 0.0) * beliefs.feasible[numbers]
    at = int(np.argmax(gains))
    sure = float(sureness(better[at], deviations[at], 0.0))
    return Promise(Aim.GAIN, int(numbers[at]), weights, float(gains[at]), float(better[at]), sure)


def drawn(beliefs: Landscape, untried: Booleans, tried: Sequence[int], rng: np.random.Generator) -> Promise:
    """Return the untried candidate that is best in one draw from the beliefs on the mean (Thompson sampling)."""
    best = leader(beliefs.score, tried)
    numbers = shortlist(beliefs, untried, beliefs.score, best)
    worth = beliefs.draws(numbers, 1, rng)[0] + FAILURE_COST * np.log(np.maximum(beliefs.feasible[numbers], 1e-9))
    number = int(numbers[int(np.argmax(worth))])
    better = float(beliefs.score[number] - beliefs.score[best])
    sure = float(sureness(np.array([better]), beliefs.deviations_from(np.array([number]), best), 0.0)[0])
    gain = float(worth.max() - beliefs.score[best])
    return Promise(Aim.DRAW, number, np.full(beliefs.goals, 1.0 / beliefs.goals), gain, better, sure)


def unsettled(
    beliefs: Landscape, untried: Booleans, tried: Sequence[int], weights: Floats, margin: float, inflation: float
) -> Promise:
    """Return the untried candidate that is likeliest to be better than the best tried one by more than a margin.

    Args:
        beliefs: Of all candidates.
        untried: Which may be chosen.
        tried: Numbers of what was measured, at least one.
        weights: How much each objective counts, 1 together.
        margin: Of the logarithm.
        inflation: Of the deviations.
    """
    goals = weights @ beliefs.means[: beliefs.goals]
    best = leader(goals, tried)
    numbers = contenders(beliefs, _running(beliefs, untried), goals, float(goals[best]) + margin, inflation)
    better, deviations = goals[numbers] - goals[best], beliefs.deviations_from(numbers, best)
    odds = sureness(better, inflation * deviations, margin) * beliefs.feasible[numbers]
    at = int(np.argmax(odds))
    sure = float(sureness(better[at], deviations[at], 0.0))
    return Promise(Aim.END, int(numbers[at]), weights, float(odds[at]), float(better[at]), sure)


def leader(goals: Floats, tried: Sequence[int]) -> int:
    """Return the candidate that others have to outdo: the best tried one, the best of all where none was tried.

    What a candidate shares with it is no reason to hope. So doubts are on how both differ, few for a near copy.
    """
    return int(tried[int(np.argmax(goals[tried]))]) if tried else int(np.argmax(goals))


def contenders(
    beliefs: Landscape, untried: Booleans, means: Floats, goal: float, inflation: float, most: int = SHORTLIST
) -> Integers:
    """Return the candidates that are likeliest to run and to be better than a goal, as a first look tells."""
    numbers = np.flatnonzero(untried)
    if len(numbers) <= most:
        return numbers
    spread = inflation * np.hypot(beliefs.doubts[numbers], beliefs.residual.own_deviation)
    odds = sureness(means[numbers], spread, goal) * beliefs.feasible[numbers]
    return numbers[np.argpartition(-odds, most)[:most]]


def shortlist(beliefs: Landscape, untried: Booleans, goals: Floats, best: int) -> Integers:
    """Return the candidates to look at closely: those that gain most on the best one, as a first look tells."""
    numbers = np.flatnonzero(_running(beliefs, untried))
    if len(numbers) <= SHORTLIST:
        return numbers
    apart = beliefs.features - beliefs.features[beliefs.chart.settings_at(np.array([best]))]
    doubts = beliefs.chart.spread(beliefs.residual.doubts(apart))[numbers]
    spread = np.hypot(doubts, beliefs.residual.own_deviation)
    worth = expected_improvement(goals[numbers], spread, float(goals[best])) * beliefs.feasible[numbers]
    return numbers[np.argpartition(-worth, SHORTLIST)[:SHORTLIST]]


def at_the_front(beliefs: Landscape, untried: Booleans, tried: Sequence[int], rng: np.random.Generator) -> Promise:
    """Return the untried candidate that adds most to the front of two objectives; of more, the best of any mixture.

    The front counts from `WORSE` below the first candidate tried, the baseline: what is slower is of no use to anyone.

    Args:
        beliefs: Of all candidates.
        untried: Which may be chosen.
        tried: Numbers of what was measured, in order.
        rng: For mixtures of more than two objectives.
    """
    likely = untried & (beliefs.feasible > LIKELY)
    if beliefs.goals != 2 or not tried or not likely.any():
        return replace(promising(beliefs, untried, tried, rng.dirichlet(np.ones(beliefs.goals))), aim=Aim.FRONT)
    numbers = np.flatnonzero(likely)
    means, front = beliefs.means[:2, numbers], beliefs.means[:2, tried].T
    mixtures = np.stack([MIXTURES, 1.0 - MIXTURES], axis=1)
    leading = min(LEADING, len(numbers)) - 1
    pooled = np.unique([np.argpartition(-(mixture @ means), leading)[: leading + 1] for mixture in mixtures])
    points = means[:, pooled].T
    corner = front[0] - WORSE
    gains = area_gains(points, front, corner) * beliefs.feasible[numbers[pooled]]
    at = int(np.argmax(gains))
    covered = sum(float(area_gains(front[[n]], front[:n], corner)[0]) for n in range(len(front)))
    ahead = mixtures @ points[at] - (mixtures @ front.T).max(axis=1)
    weights: Floats = mixtures[int(np.argmax(ahead))]
    number = int(numbers[pooled[at]])
    apart = beliefs.deviations_from(np.array([number]), leader(weights @ beliefs.means[:2], tried))
    sure = float(sureness(ahead.max(), apart, 0.0)[0])
    return Promise(Aim.FRONT, number, weights, float(gains[at]) / covered, float(ahead.max()), sure)


def _running(beliefs: Landscape, untried: Booleans) -> Booleans:
    """Return those of the candidates that may well run; all of them where none may."""
    found = untried & (beliefs.feasible > RUNS)
    return found if found.any() else untried
