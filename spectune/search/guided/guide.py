"""The next launch that the evidence asks for."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spectune.engines.protocol import Engine
from spectune.search.guided.bounds import out_of_reach
from spectune.search.guided.chart import Chart
from spectune.search.guided.choosing import LIKELY, Promise, at_the_front, contenders, drawn, promising, unsettled
from spectune.search.guided.evidence import Evidence
from spectune.search.guided.forecasts import Forecasts
from spectune.search.guided.landscape import Landscape, chances, survey
from spectune.search.guided.physics import targets_of
from spectune.search.guided.stopping import MARGIN, Outlook, outlook
from spectune.search.guided.wording import compared, describe
from spectune.serving import FailureClass
from spectune.space import Candidate, SearchSpace

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

SATED = 0.004  # expected gain in the mean of the objectives below which it is rather asked whether the search is over
CLOSE, FRONT = 0.008, 0.5  # expected gain in the mean below which so many launches are for the front, if it gains more
MANY_TREES = 30  # shapes; with fewer, a launch that only teaches does not pay
SMALL_TREE = 2  # N of the first tree at most, in lengths of its chain
UNHEARD_TRIES = 3  # launches of a drafter that has failed so far
UNHEARD_FEASIBLE = 0.25  # chance to run of the next of them, at least
EQUAL = 1e-9


@dataclass(frozen=True)
class Advice:
    """A candidate and why it is worth a launch."""

    candidate: Candidate
    why: str


class Guide:
    """Reads evidence, proposes candidates.

    What it keeps is only for speed: the chart of the space and the beliefs after the launches seen last. The same
    evidence gives the same advice whatever was asked before.
    """

    def __init__(self, space: SearchSpace, engine: Engine, *, seed: int = 0) -> None:
        self.space, self._seed = space, seed
        self.chart = Chart.of(space, engine)
        self._targets = targets_of(space)
        self._forecasts = Forecasts(lambda seen, physical: self._survey(seen, physical=physical))
        self._refused: set[int] = set()
        self._latest: tuple[tuple[Evidence, ...], Landscape] | None = None

    def propose(self, evidence: Sequence[Evidence]) -> Advice | None:
        """Return the next launch; None when every candidate has been launched, or cannot pay."""
        untried = self._untried(evidence)
        if not untried.any():
            return None
        rng = np.random.default_rng([self._seed, len(evidence)])
        if not any(item.targets for item in evidence):
            return self._cautious(evidence, untried, rng)
        beliefs = self.beliefs(evidence)
        untried &= ~self._hopeless(self.dropped(evidence))
        if not untried.any():
            return None
        first = self._unheard(evidence, beliefs, untried) or self._first_tree(evidence, beliefs, untried)
        if first is not None:
            return first
        found = self._chosen(evidence, beliefs, untried, rng)
        why = compared(self.space, beliefs, found.number, found.weights, better=found.better, sure=found.sure)
        return Advice(self.chart.table.candidate(found.number), why)

    def _chosen(
        self, evidence: Sequence[Evidence], beliefs: Landscape, untried: Booleans, rng: np.random.Generator
    ) -> Promise:
        """Return what adds most to the mean of the objectives, to their front, or to the certainty that it is over."""
        tried, known = self._tried(evidence), tuple(evidence)
        found = promising(beliefs, untried, tried, np.full(beliefs.goals, 1.0 / beliefs.goals))
        if found.gain >= CLOSE and rng.random() < self._forecasts.exploring(known):
            return drawn(beliefs, untried, tried, rng)
        if beliefs.goals > 1 and found.gain < CLOSE and rng.random() < FRONT:
            front = at_the_front(beliefs, untried, tried, rng)
            if front.gain > found.gain:
                return front
        if found.gain < SATED and tried:
            inflation = self._forecasts.inflation(known)
            found = unsettled(beliefs, untried, tried, found.weights, math.log1p(MARGIN), inflation)
        return found

    def beliefs(self, evidence: Sequence[Evidence]) -> Landscape:
        """Return what is believed of all candidates, by physics unless a search without it has predicted better."""
        known = tuple(evidence)
        if self._latest is None or self._latest[0] != known:
            physical = self._forecasts.trusts_physics(known)
            self._latest = known, self._survey(known, physical=physical)
        return self._latest[1]

    def dropped(self, evidence: Sequence[Evidence]) -> Mapping[str, str]:
        """Return the drafters that cannot pay, each with the reason."""
        beliefs = self.beliefs(evidence)
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
        untried, tried = self._untried(evidence), self._tried(evidence)
        if not untried.any() or not tried:
            return None
        beliefs, dropped = self.beliefs(evidence), self.dropped(evidence)
        untried &= ~self._hopeless(dropped)
        reasons = tuple(dropped.values())
        if not untried.any():
            return Outlook(0.0, 0.0, reasons)
        inflation = self._forecasts.inflation(tuple(evidence))
        goal = float(beliefs.score[tried].max()) + math.log1p(MARGIN)
        numbers = contenders(beliefs, untried, beliefs.score, goal, inflation)
        found = outlook(beliefs, numbers, np.array(tried), inflation)
        return replace(found, dropped=reasons)

    def standing(self, evidence: Sequence[Evidence], candidate: Candidate) -> float | None:
        """Return the log score believed of a candidate: its own launches, and what all others say of it."""
        number = self.chart.table.number(candidate)
        if number is None or not any(item.targets for item in evidence):
            return None
        return float(self.beliefs(evidence).score[number])

    def _survey(self, evidence: Sequence[Evidence], *, physical: bool) -> Landscape:
        return survey(self.chart, self.space, self._targets, evidence, physical=physical)

    def _tried(self, evidence: Sequence[Evidence]) -> list[int]:
        """Return the numbers of what was measured, within the bounds if anything was."""
        measured = [item for item in evidence if item.targets is not None]
        kept = [item for item in measured if self._keeps_bounds(item)]
        numbers = [self.chart.table.number(item.candidate) for item in kept or measured]
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

    def _unheard(self, evidence: Sequence[Evidence], beliefs: Landscape, untried: Booleans) -> Advice | None:
        """Return another launch of a drafter of which nothing is known because its launches failed."""
        heard = {self.chart.setting(item.candidate).drafter for item in evidence if item.targets is not None}
        died = [item for item in evidence if item.failure is not None]
        failed = [self.chart.setting(item.candidate).drafter for item in died]
        heard |= {self.chart.setting(i.candidate).drafter for i in died if i.failure is FailureClass.DRAFTER}
        for drafter in self.chart.drafters:
            if drafter in heard or not 0 < failed.count(drafter) < UNHEARD_TRIES:
                continue
            its = np.array([s.drafter == drafter and s.topk == 1 for s in self.chart.works.settings], np.float64)
            chance = np.where(untried, beliefs.feasible * self.chart.spread(its), 0.0)
            if chance.max() < UNHEARD_FEASIBLE:
                continue
            numbers = np.flatnonzero(chance >= chance.max() - EQUAL)
            number = int(numbers[np.argmax(beliefs.score[numbers])])
            odds = f"{chance[number]:.0%}"
            why = f"nothing is known of {drafter} since its launches failed; here it is likeliest to run ({odds})"
            return Advice(self.chart.table.candidate(number), why)
        return None

    def _first_tree(self, evidence: Sequence[Evidence], beliefs: Landscape, untried: Booleans) -> Advice | None:
        """Return the most promising small tree while none was launched: a large one tells less about the others."""
        if any(self.chart.setting(item.candidate).topk > 1 for item in evidence):
            return None
        if sum(len(alike.at) for alike in self.chart.works.drafts.groups if alike.topk > 1) < MANY_TREES:
            return None
        small = [s.topk > 1 and s.tokens <= SMALL_TREE * (s.steps + 1) for s in self.chart.works.settings]
        open_ = untried & (self.chart.spread(np.array(small, np.float64)) > 0.0) & (beliefs.feasible > LIKELY)
        if not open_.any():
            return None
        number = int(np.argmax(np.where(open_, beliefs.score, -np.inf)))
        why = f"the first tree, a small one: it tells how much breadth adds; {describe(self.space, beliefs, number)}"
        return Advice(self.chart.table.candidate(number), why)

    def _cautious(self, evidence: Sequence[Evidence], untried: Booleans, rng: np.random.Generator) -> Advice:
        """Return one of those most likely to run at all."""
        likely = np.where(untried, chances(self.chart, evidence), -1.0)
        numbers = np.flatnonzero(likely >= likely.max() - EQUAL)
        number = int(rng.choice(numbers))
        why = f"nothing was measured so far; among those most likely to run ({likely[number]:.0%})"
        return Advice(self.chart.table.candidate(number), why)
