"""Which of all candidates promises most."""

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
LEAST_FEASIBLE = 0.02
LIKELY = 0.5  # chance to run of what is launched for what it teaches, or for the front, at least
FAILURE_COST = 0.05  # of the score, in choosing whom to look at closely
HOPE = 0.5  # of the deviations: mostly the best prediction is followed, less what might be
MIXTURES = np.linspace(0.05, 0.95, 19)  # of two objectives: what the first counts


@dataclass(frozen=True)
class Promise:
    """The candidate with the greatest expected improvement.

    Attributes:
        number: Of the candidate.
        weights: How much each objective counted.
        gain: The expected improvement of the weighted log objectives, failures counting nothing.
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


def shortlist(beliefs: Landscape, untried: Booleans, means: Floats) -> Integers:
    """Return the candidates to look at closely: those with the best prospects, their doubts in their favour."""
    numbers = np.flatnonzero(untried & (beliefs.feasible > LEAST_FEASIBLE))
    if not len(numbers):
        numbers = np.flatnonzero(untried)
    if len(numbers) <= SHORTLIST:
        return numbers
    risk = np.log(np.maximum(beliefs.feasible[numbers], 1e-9))
    worth = means[numbers] + beliefs.doubts[numbers] + FAILURE_COST * risk
    return numbers[np.argpartition(-worth, SHORTLIST)[:SHORTLIST]]


def front_weights(beliefs: Landscape, untried: Booleans, tried: Sequence[int], rng: np.random.Generator) -> Floats:
    """Return the mixture of two objectives whose best candidate would add most to the front; of more, any mixture."""
    if beliefs.goals != 2 or not tried:
        return rng.dirichlet(np.ones(beliefs.goals))
    means = beliefs.means[:2]
    mixtures = np.stack([MIXTURES, 1.0 - MIXTURES], axis=1)
    likely = np.where(untried & (beliefs.feasible > LIKELY), 0.0, -np.inf)
    winners = [int(np.argmax(mixture @ means + likely)) for mixture in mixtures]
    points = means[:, winners].T
    front = means[:, tried].T
    chosen: Floats = mixtures[int(np.argmax(area_gains(points, front, front.min(axis=0))))]
    return chosen
