"""Which of all candidates promises most: to the mean of the objectives, to their front, or to an end of the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
FAILURE_COST = 0.05  # of the score, in choosing whom to look at closely
HOPE = 0.5  # of the deviations: mostly the best prediction is followed, less what might be
WORSE = 0.1  # of the logarithm of an objective: as far below the baseline a candidate may still be one to choose
LEADING = 10  # candidates of each mixture that are looked at
MIXTURES = np.linspace(0.05, 0.95, 19)  # of two objectives: what the first counts


@dataclass(frozen=True)
class Promise:
    """A candidate and what its launch promises.

    Attributes:
        number: Of the candidate.
        weights: How much each objective counted.
        gain: What it is expected to add, failures adding nothing: to the weighted log objectives; to the area of a
            front, as a share of it; or the chance that it is better than all others.
        better: Expected log improvement on the best so far, negative where it is likelier worse.
        sure: Probability of any improvement.
    """

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
    numbers = shortlist(beliefs, untried, weights @ beliefs.means[: beliefs.goals])
    deviations = beliefs.deviations(numbers)
    means = weights @ beliefs.means[: beliefs.goals, numbers]
    best = float((weights @ beliefs.means[: beliefs.goals, tried]).max()) if tried else float(means.max())
    gains = expected_improvement(means, HOPE * deviations, best) * beliefs.feasible[numbers]
    at = int(np.argmax(gains))
    sure = float(sureness(means[at], deviations[at], best))
    return Promise(int(numbers[at]), weights, float(gains[at]), float(means[at]) - best, sure)


def drawn(beliefs: Landscape, untried: Booleans, tried: Sequence[int], rng: np.random.Generator) -> Promise:
    """Return the untried candidate that is best in one draw from the beliefs on the mean (Thompson sampling)."""
    numbers = shortlist(beliefs, untried, beliefs.score)
    worth = beliefs.draws(numbers, 1, rng)[0] + FAILURE_COST * np.log(np.maximum(beliefs.feasible[numbers], 1e-9))
    number = int(numbers[int(np.argmax(worth))])
    best = float(beliefs.score[tried].max()) if tried else float(beliefs.score[number])
    better = float(beliefs.score[number]) - best
    deviation = beliefs.deviations(np.array([number]))
    sure = float(sureness(np.array([better]), deviation, 0.0)[0])
    return Promise(number, np.full(beliefs.goals, 1.0 / beliefs.goals), float(worth.max()) - best, better, sure)


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
    best = float(goals[tried].max())
    numbers = contenders(beliefs, _running(beliefs, untried), goals, best + margin, inflation)
    means, deviations = goals[numbers], beliefs.deviations(numbers)
    odds = sureness(means, inflation * deviations, best + margin) * beliefs.feasible[numbers]
    at = int(np.argmax(odds))
    sure = float(sureness(means[at], deviations[at], best))
    return Promise(int(numbers[at]), weights, float(odds[at]), float(means[at]) - best, sure)


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


def shortlist(beliefs: Landscape, untried: Booleans, means: Floats) -> Integers:
    """Return the candidates to look at closely: those with the best prospects, their doubts in their favour."""
    numbers = np.flatnonzero(_running(beliefs, untried))
    if len(numbers) <= SHORTLIST:
        return numbers
    risk = np.log(np.maximum(beliefs.feasible[numbers], 1e-9))
    worth = means[numbers] + beliefs.doubts[numbers] + FAILURE_COST * risk
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
        return promising(beliefs, untried, tried, rng.dirichlet(np.ones(beliefs.goals)))
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
    deviation = float(beliefs.deviations(np.array([number]))[0])
    sure = float(sureness(np.array(ahead.max()), np.array(deviation), 0.0))
    return Promise(number, weights, float(gains[at]) / covered, float(ahead.max()), sure)


def _running(beliefs: Landscape, untried: Booleans) -> Booleans:
    """Return those of the candidates that may well run; all of them where none may."""
    found = untried & (beliefs.feasible > RUNS)
    return found if found.any() else untried
