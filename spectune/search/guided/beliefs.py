"""What is believed after some launches: with an earlier study's or without, with an open mind or soberly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from spectune.search.guided.chart import Chart
from spectune.search.guided.evidence import Evidence
from spectune.search.guided.forecasts import Forecasts
from spectune.search.guided.landscape import Landscape, survey
from spectune.search.guided.physics import targets_of
from spectune.space import SearchSpace

TELLING = 0.5  # log odds for an earlier study that it has to earn; a helpful one has 2 to 4 after one launch
UNTOLD = 3  # launches without speculation that say too little of it
KEPT = 2  # beliefs of each kind: after the last launch, and where its forecast rests on


class Beliefs:
    """Fits the models to evidence.

    What it keeps is only for speed: the beliefs asked for last. What to launch is asked with an open
    mind: effects may be as large as is usual, however small they were so far. How much is left to find is asked
    soberly: effects are as large as the launches let expect.
    """

    def __init__(self, chart: Chart, space: SearchSpace, borrowed: Sequence[Evidence]) -> None:
        """Begin without launches.

        Args:
            chart: Of the space.
            space: What is searched.
            borrowed: Discounted launches of an earlier study, which have to earn their trust.
        """
        self.targets = targets_of(space)
        self._chart, self._space, self.borrowed = chart, space, tuple(borrowed)
        self._forecasts = {
            (helped, sober): Forecasts(partial(self._survey, helped=helped, sober=sober))
            for helped in (False, True)
            for sober in (False, True)
        }
        self._latest: dict[tuple[bool, ...], list[tuple[tuple[Evidence, ...], Landscape]]] = {}

    def lent(self, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """Return the launches of the earlier study; none as soon as this study's own do not speak for them."""
        known = tuple(evidence)
        if len(known) <= UNTOLD and not any(item.candidate.speculative for item in known):
            return self.borrowed
        if not self.borrowed:
            return ()
        helped, alone = (self._forecasts[helped, False].likelihood(known) for helped in (True, False))
        return self.borrowed if helped - alone >= TELLING else ()

    def openly(self, evidence: Sequence[Evidence]) -> Landscape:
        """Return what is believed where it is asked what to launch."""
        return self._believed(tuple(evidence), helped=bool(self.lent(evidence)))

    def soberly(self, evidence: Sequence[Evidence]) -> Landscape:
        """Return what is believed where it is asked how much is left to find."""
        return self._believed(tuple(evidence), helped=bool(self.lent(evidence)), sober=True)

    def alone(self, evidence: Sequence[Evidence]) -> Landscape:
        """Return what is believed by this study's launches only."""
        return self._believed(tuple(evidence), helped=False)

    def forecasts(self, evidence: Sequence[Evidence], *, sober: bool = False) -> Forecasts:
        """Return how well the beliefs have predicted."""
        return self._forecasts[bool(self.lent(evidence)), sober]

    def _believed(self, known: tuple[Evidence, ...], *, helped: bool, sober: bool = False) -> Landscape:
        """Return what is believed, by physics unless a search without it has predicted better."""
        physical = self._forecasts[helped, False].trusts_physics(known)
        return self._survey(known, physical, helped=helped, sober=sober)

    def _survey(self, seen: tuple[Evidence, ...], physical: bool, *, helped: bool, sober: bool) -> Landscape:
        """Return what is believed after some launches."""
        latest = self._latest.setdefault((physical, helped, sober), [])
        at = next((at for at, (known, _) in enumerate(latest) if known == seen), None)
        if at is None:
            known = (*self.borrowed, *seen) if helped else seen
            found = survey(self._chart, self._space, self.targets, known, physical=physical, sober=sober)
            latest.append((seen, found))
            del latest[:-KEPT]
        else:
            latest.append(latest.pop(at))
        return latest[-1][1]
