"""Whether a launch that is being measured is already known to be worse than another one in everything that counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from spectune.analysis.estimate import Estimate
from spectune.analysis.launch_noise import launch_noise
from spectune.analysis.measurement import LevelMeasurement
from spectune.bench.course import GiveUp, Highest
from spectune.search.evidence.timeline import as_in, timeline
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.search.storage.values import keeps_bounds, measured_values
from spectune.space import Objective, SearchSpace

SURE = 2.0
"""Standard deviations of the difference of two launches by which the other one must be better: above 95 %, because the
best of many launches was also the luckiest."""


def may_end(step: Step, space: SearchSpace, records: Sequence[TrialRecord]) -> Dominated | None:
    """Return what may end a launch early; None for baselines and finalists, which are measured in full."""
    if step.role is not Role.SEARCH or not step.candidate.speculative:
        return None
    return Dominated(space, as_in(records, timeline(records, space), step.place))


class Dominated:
    """Compares a launch under way with all that were measured before it."""

    def __init__(self, space: SearchSpace, records: Sequence[TrialRecord]) -> None:
        """Take up what has been seen.

        Args:
            space: Its objectives are what counts.
            records: Finished launches.
        """
        self._objectives = space.objectives
        self._seen: list[list[float]] = []
        repeats: dict[str, list[Estimate]] = {}
        for record in records:
            if (values := measured_values(record, space)) is not None and keeps_bounds([record], space):
                self._seen.append(values)
                level = record.level(space.objectives[-1].level)
                assert level is not None, "it gave a value for every objective"
                repeats.setdefault(record.candidate.candidate_id, []).append(level.decode_speed)
        noise = launch_noise(repeats.values())
        self._worse = 1.0 - SURE * math.sqrt(2.0) * noise.relative_sd

    def by_anyone(self, levels: Iterable[LevelMeasurement], level: str) -> GiveUp:
        """Return the question to ask while a level is measured: whether another launch is better in all objectives.

        The answer is no, and so the level goes on, where an objective belongs to a later level, or has no bound before
        the end of this one.

        Args:
            levels: Those that have been measured.
            level: Name of the one that is.
        """
        measured = {one.level: one for one in levels}

        def give_up(highest: Highest) -> bool:
            bounds = [_bound(objective, measured, level, highest) for objective in self._objectives]
            return None not in bounds and any(
                all(self._is_worse(*each) for each in zip(bounds, values, self._objectives, strict=True))
                for values in self._seen
            )

        return give_up

    def _is_worse(self, bound: float | None, value: float, objective: Objective) -> bool:
        if bound is None:
            return False
        return bound < value * self._worse if objective.direction == "maximize" else bound * self._worse > value


def _bound(objective: Objective, measured: dict[str, LevelMeasurement], level: str, highest: Highest) -> float | None:
    """The best that an objective can still come out as, with 95 % confidence; None where that is open."""
    maximize = objective.direction == "maximize"
    if objective.level == level:
        return highest.of(objective.metric) if maximize else None
    if objective.level not in measured:
        return None
    figure = getattr(measured[objective.level], objective.metric)
    if isinstance(figure, Estimate):
        return figure.hi if maximize else figure.lo
    return float(figure)
