"""Whether another launch of the search can still be worth it.

What is not tried is compared with the best of the finalists: of the launched candidates that may well be the best one.
Which of them it is, launches of something else cannot tell. The confirmation can, which launches them again: that doubt
is no reason to go on searching.

The models are fitted anew after every launch, so what they are sure of comes and goes: a search that ends as soon as
they are sure ends by their luckiest fit. They have to be sure after each of the last launches. Where little is left to
gain, each of these was of the candidate likeliest to prove them wrong. That is asked for more often where parameters
have effects beyond what is known of the physics: a machine that has some may have others that no launch has shown, and
of a strong pair the size of all others says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spectune.search.guided.acquisition import sureness
from spectune.search.guided.evidence import Evidence
from spectune.search.guided.landscape import Landscape

Integers = npt.NDArray[np.int64]
Seen = tuple[Evidence, ...]

MARGIN = 0.01  # better by less than this is not worth a launch
SURE = 0.95
HOLDS = 3  # launches in a row after which it has to be that sure, where effects are no larger than the noise
LARGE = 3.0  # effects in deviations of the noise: so many times as many launches, and no more where they are larger
GLANCE, DRAWS = 400, 2000  # few draws tell that much is left; a chance of 5 % is known to half a percent by many
CLEARLY = 3.0  # times the chance that ends a search: what is left is then no matter of draws
SHORTLIST = 3000  # untried candidates that are looked at
CONTENDERS = 200  # untried candidates that are drawn together, at most
SLIGHT = 0.002  # chance that one of those left out is better, at most where fewer are drawn


@dataclass(frozen=True)
class Outlook:
    """What is left to find.

    Attributes:
        chance: Probability that an untried candidate is better than the best finalist by more than `MARGIN`.
        gain: Expected log improvement of the best untried candidate over the best finalist.
        open: How many untried candidates, launched one by one, would leave too little chance to go on for.
        dropped: Branches that cannot pay, and why, in a sentence each.
        barren: Whether there is nothing untried but what was dropped.
        kept: Whether a launched candidate keeps the bounds. If none does, `chance` is that of the likeliest untried
            one to keep them: what the models have wrong they have wrong of all.
        holds: After how many launches in a row the models have to be sure.
    """

    chance: float
    gain: float
    open: int = 0
    dropped: tuple[str, ...] = ()
    barren: bool = False
    kept: bool = True
    holds: int = HOLDS

    @property
    def enough(self) -> bool:
        """Whether the search may end."""
        return self.chance <= 1.0 - SURE

    @property
    def reason(self) -> str:
        """Why it ends, in one sentence."""
        if not self.kept:
            least = "under 1%" if self.chance < 0.01 else f"{self.chance:.0%}"
            likeliest = "" if self.barren else f" (the likeliest: {least})"
            lead = "no launched candidate keeps the constraints, and by this search's model no untried one is likely to"
            return "; ".join((f"{lead}{likeliest}", *self.dropped))
        share = "over 99%" if self.chance < 0.01 else f"{1.0 - self.chance:.0%}"
        held = "" if self.barren else f", after each of the last {self.holds} launches,"
        sure = (
            f"by this search's model it is {share} sure{held} that no untried candidate is better by more than "
            f"{MARGIN:.0%} than the best of the finalists (expected gain of going on: {math.expm1(self.gain):.2%})"
        )
        return "; ".join((sure, *self.dropped))


class Outlooks:
    """What is left to find after launches: the most that was expected after any of the last ones.

    What it keeps is only for speed: each is asked for again with the next launches.
    """

    def __init__(self, look: Callable[[Seen], Outlook | None]) -> None:
        """Begin without any; `look` tells what is left by the models after some launches."""
        self._look = look
        self._known: dict[int, tuple[Seen, Outlook | None]] = {}

    def after(self, seen: Seen) -> Outlook | None:
        """Return what is left; None while nothing was measured, or nothing is untried."""
        found = self._at(seen)
        for back in range(1, found.holds if found is not None else 1):
            if found is None or found.barren or not found.enough:
                break
            before = self._at(seen[: len(seen) - back])
            if before is None:
                return None
            # Which question is open, whether any keeps the bounds or one is better, the last launch says.
            found = replace(max(found, before, key=lambda one: one.chance), kept=found.kept, holds=found.holds)
        return found

    def _at(self, seen: Seen) -> Outlook | None:
        if len(seen) not in self._known or self._known[len(seen)][0] != seen:
            self._known[len(seen)] = seen, self._look(seen)
        return self._known[len(seen)][1]


def outlook_within_bounds(beliefs: Landscape, untried: Integers) -> Outlook:
    """Return what is left to find while no launched candidate keeps the bounds: one that does."""
    likely = beliefs.feasible[untried]
    return Outlook(float(likely.max()), 0.0, open=int(np.count_nonzero(likely > 1.0 - SURE)), kept=False)


def outlook(beliefs: Landscape, untried: Integers, finalists: Integers, inflation: float) -> Outlook:
    """Draw scores of the finalists and of their likeliest betters together, and see who wins.

    Args:
        beliefs: After all launches.
        untried: Numbers of candidates worth a look.
        finalists: Numbers of the launched candidates that the confirmation would choose from.
        inflation: By how much the deviations are too small.
    """
    best = int(finalists[np.argmax(beliefs.score[finalists])])
    spread = inflation * beliefs.deviations_from(untried, best)
    odds = sureness(beliefs.score[untried], spread, float(beliefs.score[best]) + math.log1p(MARGIN))
    odds *= beliefs.feasible[untried]
    order = np.argsort(-odds)
    beyond = np.cumsum(odds[order[::-1]])[::-1]  # bounds the chance that any from there on is better
    likely = max(1, min(CONTENDERS, int(np.count_nonzero(beyond > SLIGHT))))
    contenders = untried[order[:likely]]
    found = _drawn(beliefs, contenders, finalists, GLANCE, inflation)
    if found.chance <= CLEARLY * (1.0 - SURE):
        found = _drawn(beliefs, contenders, finalists, DRAWS, inflation)
    return replace(found, holds=_holds(beliefs))


def _holds(beliefs: Landscape) -> int:
    """Return after how many launches in a row the models have to be sure."""
    process = beliefs.residual
    return math.ceil(HOLDS * min(max(1.0, process.own_deviation / process.noise), LARGE))


def _drawn(beliefs: Landscape, untried: Integers, finalists: Integers, count: int, inflation: float) -> Outlook:
    """Return the outlook by so many draws."""
    rng = np.random.default_rng(0)
    draws = beliefs.draws(np.concatenate([finalists, untried]), count, rng, inflation)
    runs = rng.random((count, 1)) < beliefs.feasible[untried]
    theirs = np.where(runs, draws[:, len(finalists) :], -np.inf)
    ahead = theirs.max(axis=1) - draws[:, : len(finalists)].max(axis=1)
    better = ahead > math.log1p(MARGIN)
    winners = theirs.argmax(axis=1)[better]
    return Outlook(float(np.mean(better)), float(np.mean(np.maximum(0.0, ahead))), _open(winners, count))


def _open(winners: Integers, draws: int) -> int:
    """Return how many candidates win all but `1 - SURE` of the draws, of those that are won by any."""
    wins = np.sort(np.bincount(winners))[::-1]
    return int(np.searchsorted(np.cumsum(wins), wins.sum() - (1.0 - SURE) * draws)) + 1 if len(winners) else 0
