"""One place's launches on its own clock: its drift taken out, and cut where it jumped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spectune.analysis.drift import Drift, Jump, Repeat, find_drift, find_jump, surprises
from spectune.search.evidence.noise import noise_of
from spectune.search.evidence.scaling import scaled
from spectune.search.evidence.speeds import Speed
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role


@dataclass(frozen=True)
class PlaceLine:
    """The launches of one place that gave every objective, brought to the time of its last one.

    Attributes:
        place: Its name.
        launches: Those since its last jump.
        doubts: What is not known of the drift that was taken out of each of them: a half-width of ln.
        before: Those before it, as fast as they would be now.
        drift: Over the launches since its last jump; None where too few were made twice.
        jumps: Its jumps, the oldest first.
        surprised: Whether its last launch is so unlike its repeats that it is to be made again.
    """

    place: str
    launches: tuple[TrialRecord, ...] = ()
    doubts: tuple[float, ...] = ()
    before: tuple[TrialRecord, ...] = ()
    drift: Drift | None = None
    jumps: tuple[Jump, ...] = ()
    surprised: bool = False

    @property
    def corrected(self) -> bool:
        """Whether a drift was taken out."""
        return self.drift is not None and self.drift.shown


def place_line(
    records: Sequence[TrialRecord], usable: Sequence[TrialRecord], speed: Speed, hours: Mapping[int, float]
) -> PlaceLine:
    """Return the launches of one place as they can be compared with each other.

    Args:
        records: All finished launches of the place, in order.
        usable: Those of them that gave every objective, at least one.
        speed: The objectives together.
        hours: The clock of the place, by trial.
    """
    since = list(usable)
    before: list[TrialRecord] = []
    jumps: list[Jump] = []
    while (jump := find_jump(_repeats(since, speed, hours))) is not None:
        before = [scaled(record, math.exp(jump.change.est)) for record in before]
        before += [scaled(record, math.exp(jump.change.est)) for record in since if record.trial < jump.after]
        since = [record for record in since if record.trial >= jump.after]
        jumps.append(jump)
    repeats = _repeats(since, speed, hours)
    drift = find_drift(repeats)
    doubts = [0.0] * len(since)
    if drift is not None and drift.shown:
        ages = [hours[since[-1].trial] - hours[record.trial] for record in since]
        since = [scaled(record, drift.factor(age)) for record, age in zip(since, ages, strict=True)]
        doubts = [drift.doubt(age) for age in ages]
    surprised = bool(repeats) and repeats[-1].trial == records[-1].trial and records[-1].role is Role.DRIFT
    return PlaceLine(
        place=records[-1].place,
        launches=tuple(since),
        doubts=tuple(doubts),
        before=tuple(before),
        drift=drift,
        jumps=tuple(jumps),
        # A surprise must not hide in the noise it makes.
        surprised=surprised and surprises(repeats[-1], repeats[:-1], noise_of(since[:-1], speed).relative_sd),
    )


def study_hours(records: Sequence[TrialRecord]) -> dict[int, float]:
    """Return its place's clock in the middle of every launch, by number: what was launched there, not what passed."""
    spent: dict[str, float] = {}
    hours = {}
    for record in records:
        begun = spent.get(record.place, 0.0)
        hours[record.trial] = (begun + record.seconds.total / 2.0) / 3600.0
        spent[record.place] = begun + record.seconds.total
    return hours


def _repeats(records: Sequence[TrialRecord], speed: Speed, hours: Mapping[int, float]) -> list[Repeat]:
    found = [(record, value) for record in records if record.role is not Role.SEARCH and (value := speed(record))]
    return [Repeat(r.trial, r.candidate.candidate_id, hours[r.trial], math.log(value.est)) for r, value in found]
