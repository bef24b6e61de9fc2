"""Whether another launch can still be worth it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from spectune.search.guided.landscape import Landscape

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MARGIN = 0.01  # better by less than this is not worth a launch
SURE = 0.95
DRAWS = 2000  # a chance of 5 % is then known to half a percent; with 400, luck ended searches
CONTENDERS = 120  # untried candidates that are drawn together


@dataclass(frozen=True)
class Outlook:
    """What is left to find.

    Attributes:
        chance: Probability that an untried candidate is better than the best tried one by more than `MARGIN`.
        gain: Expected log improvement of the best untried candidate over the best tried one.
        open: How many untried candidates, launched one by one, would leave too little chance to go on for.
        dropped: Branches that cannot pay, and why, in a sentence each.
    """

    chance: float
    gain: float
    open: int = 0
    dropped: tuple[str, ...] = ()

    @property
    def enough(self) -> bool:
        """Whether the search may end."""
        return self.chance <= 1.0 - SURE

    @property
    def reason(self) -> str:
        """Why it ends, in one sentence."""
        share = "over 99%" if self.chance < 0.01 else f"{1.0 - self.chance:.0%}"
        sure = (
            f"by this search's model it is {share} sure that no untried candidate is better by more than "
            f"{MARGIN:.0%} (expected gain of going on: {math.expm1(self.gain):.2%})"
        )
        return "; ".join((sure, *self.dropped))


def outlook(beliefs: Landscape, untried: Integers, tried: Integers, inflation: float) -> Outlook:
    """Draw scores of the best candidates together, and see who wins.

    Args:
        beliefs: After all launches.
        untried: Numbers of candidates worth a look.
        tried: Numbers of those that were measured.
        inflation: By how much the deviations are too small.
    """
    best = float(beliefs.score[tried].max())
    spread = beliefs.deviations(untried) * inflation
    odds = ndtr((beliefs.score[untried] - best - math.log1p(MARGIN)) / np.maximum(spread, 1e-9))
    contenders = untried[np.argsort(-odds * beliefs.feasible[untried])[:CONTENDERS]]
    champions = tried[np.argsort(-beliefs.score[tried])[:10]]
    numbers = np.concatenate([champions, contenders])
    rng = np.random.default_rng(0)
    draws = beliefs.draws(numbers, DRAWS, rng, inflation)
    runs = rng.random((DRAWS, 1)) < beliefs.feasible[contenders]
    theirs = np.where(runs, draws[:, len(champions) :], -np.inf)
    ahead = theirs.max(axis=1) - draws[:, : len(champions)].max(axis=1)
    better = ahead > math.log1p(MARGIN)
    return Outlook(float(np.mean(better)), float(np.mean(np.maximum(0.0, ahead))), _open(theirs.argmax(axis=1)[better]))


def _open(winners: Integers) -> int:
    """Return how many candidates win all but `1 - SURE` of the draws, of those that are won by any."""
    wins = np.sort(np.bincount(winners))[::-1]
    return int(np.searchsorted(np.cumsum(wins), wins.sum() - (1.0 - SURE) * DRAWS)) + 1 if len(winners) else 0
