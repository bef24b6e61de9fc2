"""The next launch that the evidence asks for."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spectune.engines.protocol import Engine
from spectune.search.evidence.ranking import SMALL_CHANCE
from spectune.search.guided.acquisition import sureness
from spectune.search.guided.beliefs import Beliefs
from spectune.search.guided.believing import believing
from spectune.search.guided.bounds import out_of_reach
from spectune.search.guided.chart import Chart
from spectune.search.guided.choosing import Promise, at_the_front, contenders, drawn, promising, unsettled
from spectune.search.guided.evidence import Evidence
from spectune.search.guided.landscape import Landscape, chances
from spectune.search.guided.paying import chance
from spectune.search.guided.stopping import MARGIN, SHORTLIST, Outlook, Outlooks, outlook, outlook_within_bounds
from spectune.search.guided.teaching import EQUAL, Advice, first_speculation, first_tree, unheard
from spectune.search.guided.wording import compared
from spectune.space import Candidate, SearchSpace

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

SATED = 0.008  # expected gain in the mean of the objectives below which it is rather asked whether the search is over
CLOSE, FRONT = 0.03, 0.7  # expected gain in the mean below which so many launches are for the front, if it gains more
COVERED = 0.002  # share of the front's area by which a launch for it enlarges it, at least
DOUBTING = 2.0  # factor on doubts, at least, where a launch is made to end the search: they are narrow near the best


class Guide:
    """Reads evidence, proposes candidates.

    What it keeps is only for speed: the chart of the space and the beliefs after the launches seen last. The same
    evidence gives the same advice whatever was asked before.
    """

    def __init__(
        self, space: SearchSpace, engine: Engine, *, seed: int = 0, borrowed: Sequence[Evidence] = (), lender: str = ""
    ) -> None:
        """Chart a space.

        Args:
            space: What is searched.
            engine: What is launched.
            seed: Of the draws.
            borrowed: Discounted launches of an earlier study. They shape beliefs as long as this study's launches are
                likelier with them than without (a Bayes factor), and are never taken for launches of this one.
            lender: The name of that study.
        """
        self.space, self._seed = space, seed
        self.chart = Chart.of(space, engine)
        self.beliefs = Beliefs(self.chart, space, borrowed)
        self._lender = lender
        self._refused: set[int] = set()
        self._outlooks = Outlooks(self._looked)

    def propose(self, evidence: Sequence[Evidence], running: Sequence[Evidence] = ()) -> Advice | None:
        """Return the next launch; None when every candidate has been launched, or cannot pay.

        Args:
            evidence: Of the finished launches.
            running: Of those that are being made: they are believed to measure what is expected of them.
        """
        launched = (*evidence, *running)
        untried = self._untried(launched)
        if not untried.any():
            return None
        rng = np.random.default_rng([self._seed, len(launched)])
        if not any(item.targets for item in evidence):
            return self._cautious(evidence, untried, rng)
        beliefs = self.beliefs.openly(evidence)
        untried &= ~self._hopeless(self.dropped(evidence))
        if not untried.any():
            return None
        if begun := self._numbers(running):
            beliefs = believing(beliefs, np.array(begun))
        known = (*self.beliefs.lent(evidence), *launched)
        first = first_speculation(self.space, beliefs, launched, untried) if self.beliefs.borrowed else None
        tried = [*self._tried(evidence), *begun]
        first = first or unheard(beliefs, evidence, untried) or first_tree(self.space, beliefs, known, untried, tried)
        if first is not None:
            return replace(first, why=first.why + self._hint(evidence))
        found = self._chosen(evidence, beliefs, untried, tried, rng)
        why = compared(self.space, beliefs, found)
        return Advice(self.chart.table.candidate(found.number), why + self._hint(evidence))

    def _chosen(
        self,
        evidence: Sequence[Evidence],
        beliefs: Landscape,
        untried: Booleans,
        tried: Sequence[int],
        rng: np.random.Generator,
    ) -> Promise:
        """Return what adds most to the mean of the objectives, to their front, or to the certainty that it is over."""
        known, forecasts = tuple(evidence), self.beliefs.forecasts(evidence)
        found = promising(beliefs, untried, tried, np.full(beliefs.goals, 1.0 / beliefs.goals))
        if found.gain >= CLOSE and rng.random() < forecasts.exploring(known):
            return drawn(beliefs, untried, tried, rng)
        if beliefs.goals > 1 and found.gain < CLOSE and rng.random() < FRONT:
            front = at_the_front(beliefs, untried, tried, rng)
            if front.gain > max(COVERED, found.gain):
                return front
        if found.gain < SATED and tried:
            inflation = max(DOUBTING, forecasts.inflation(known))
            found = unsettled(beliefs, untried, tried, found.weights, math.log1p(MARGIN), inflation)
        return found

    def drafters_heard(self, evidence: Sequence[Evidence]) -> frozenset[str]:
        """Return the drafters whose acceptance is known, from this study or the earlier one."""
        heard = [item for item in (*self.beliefs.lent(evidence), *evidence) if item.levels]
        return frozenset(d for item in heard if (d := self.chart.setting(item.candidate).drafter) is not None)

    def paying(self, evidence: Sequence[Evidence], scatter: float) -> float | None:
        """Return the chance that speculation pays; None until both branches were measured, here or in an earlier study.

        Args:
            evidence: Of the finished launches.
            scatter: Standard deviation of the log score from launch to launch.
        """
        measured = [item for item in (*self.beliefs.lent(evidence), *evidence) if item.targets is not None]
        speculative = sum(item.candidate.speculative for item in measured)
        if not 0 < speculative < len(measured):
            return None
        ran = {item.candidate for item in evidence if item.failure is None}
        failed = np.zeros(self.chart.table.size, np.bool_)
        for item in evidence:
            number = self.chart.table.number(item.candidate)
            if number is not None and item.candidate not in ran:
                failed[number] = True
        return chance(
            self.beliefs.soberly(evidence), failed, (speculative, len(measured) - speculative),
            inflation=self.beliefs.forecasts(evidence).miss(tuple(evidence)), scatter=scatter,
        )  # fmt: skip

    def dropped(self, evidence: Sequence[Evidence]) -> Mapping[str, str]:
        """Return the drafters that cannot pay, each with the reason."""
        beliefs = self.beliefs.openly(evidence)
        measured = [item for item in evidence if item.targets is not None]
        numbers = [self.chart.table.number(item.candidate) for item in measured if not item.candidate.speculative]
        scores = [float(beliefs.score[number]) for number in numbers if number is not None]
        if not scores:
            return {}
        drafters = {self.chart.setting(item.candidate).drafter for item in measured}
        return out_of_reach(beliefs, max(scores), frozenset(name for name in drafters if name is not None))

    def refuse(self, candidate: Candidate) -> None:
        """Never propose a candidate again: something else than the evidence speaks against it."""
        number = self.chart.table.number(candidate)
        if number is not None:
            self._refused.add(number)

    def outlook(self, evidence: Sequence[Evidence]) -> Outlook | None:
        """Return what another launch may bring; None while nothing was measured, or nothing is left."""
        return self._outlooks.after(tuple(evidence))

    def _looked(self, evidence: tuple[Evidence, ...]) -> Outlook | None:
        """Return what another launch may bring by the models after these launches alone."""
        untried, tried = self._untried(evidence), self._tried(evidence)
        if not untried.any() or not tried:
            return None
        beliefs, dropped = self.beliefs.soberly(evidence), self.dropped(evidence)
        kept = any(item.targets is not None and self._keeps_bounds(item) for item in evidence)
        untried &= ~self._hopeless(dropped)
        reasons = tuple(dropped.values())
        if not untried.any():
            return Outlook(0.0, 0.0, dropped=reasons, barren=True, kept=kept)
        if not kept:
            return replace(outlook_within_bounds(beliefs, np.flatnonzero(untried)), dropped=reasons)
        inflation = self.beliefs.forecasts(evidence, sober=True).inflation(evidence)
        finalists = self._finalists(evidence, np.array(tried))
        goal = float(beliefs.score[finalists].max()) + math.log1p(MARGIN)
        numbers = contenders(beliefs, untried, beliefs.score, goal, inflation, SHORTLIST)
        return replace(outlook(beliefs, numbers, finalists, inflation), dropped=reasons)

    def _finalists(self, evidence: Sequence[Evidence], tried: Integers) -> Integers:
        """Return those of the candidates that the confirmation would choose from: the best, and its rivals."""
        alone = self.beliefs.alone(evidence)
        scores = alone.score[tried]
        found: Integers = tried[sureness(scores, math.sqrt(2.0) * alone.residual.noise, scores.max()) >= SMALL_CHANCE]
        return found

    def standing(self, evidence: Sequence[Evidence], candidate: Candidate) -> float | None:
        """Return the log score believed of a candidate: its own launches, and what all others of this study say."""
        number = self.chart.table.number(candidate)
        if number is None or not any(item.targets for item in evidence):
            return None
        return float(self.beliefs.alone(evidence).score[number])

    def _hint(self, evidence: Sequence[Evidence]) -> str:
        """Return who says so, as long as it is mostly the earlier study."""
        return f", as study {self._lender} suggests" if len(self.beliefs.lent(evidence)) > len(evidence) else ""

    def _tried(self, evidence: Sequence[Evidence]) -> list[int]:
        """Return the numbers of what was measured, within the bounds if anything was."""
        measured = [item for item in evidence if item.targets is not None]
        kept = [item for item in measured if self._keeps_bounds(item)]
        return self._numbers(kept or measured)

    def _numbers(self, evidence: Sequence[Evidence]) -> list[int]:
        numbers = [self.chart.table.number(item.candidate) for item in evidence]
        return list(dict.fromkeys(number for number in numbers if number is not None))

    def _keeps_bounds(self, item: Evidence) -> bool:
        bounded = (item.targets or ())[len(self.space.objectives) :]
        return all(c.excess(math.exp(log)) <= 0.0 for c, log in zip(self.space.constraints, bounded, strict=True))

    def _untried(self, evidence: Sequence[Evidence]) -> Booleans:
        found = self.chart.table.allowed.copy()
        found[list(self._refused)] = False
        for item in evidence:
            number = self.chart.table.number(item.candidate)
            if number is not None:
                found[number] = False
        return found

    def _hopeless(self, drafters: Collection[str]) -> Booleans:
        """Return the candidates of some drafters."""
        own = np.array([setting.drafter in drafters for setting in self.chart.works.settings], np.float64)
        return self.chart.spread(own) > 0.0

    def _cautious(self, evidence: Sequence[Evidence], untried: Booleans, rng: np.random.Generator) -> Advice:
        """Return one of those most likely to run at all."""
        likely = np.where(untried, chances(self.chart, evidence), -1.0)
        numbers = np.flatnonzero(likely >= likely.max() - EQUAL)
        number = int(rng.choice(numbers))
        why = f"nothing was measured so far; among those most likely to run ({likely[number]:.0%})"
        return Advice(self.chart.table.candidate(number), why)
