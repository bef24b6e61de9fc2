"""The launches on the study's clock: drift taken out, and nothing compared across a jump of the machine."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from spectune.analysis.drift import Drift, Jump, Repeat, find_drift, find_jump, surprises
from spectune.analysis.launch_noise import LaunchNoise, launch_noise
from spectune.analysis.measurement import LevelMeasurement
from spectune.search.records import Role, TrialRecord
from spectune.search.speeds import Speed, by_candidate, together
from spectune.search.values import measured_values
from spectune.space import SearchSpace

_FASTER = ("decode_speed", "output_throughput")
_SLOWER = ("cycle_ms", "inter_chunk_ms", "ttft_p50_ms", "ttft_p95_ms", "itl_p50_ms", "itl_p95_ms")


@dataclass(frozen=True)
class Timeline:
    """The launches that gave every objective, brought to the time of the last one.

    Attributes:
        launches: Those since the last jump: only they are compared.
        before: Those before it, as fast as they would be now: they say what is worth a launch, and nothing else.
        drift: Over the launches since the last jump; None where too few were made twice.
        jumps: Jumps of the machine, the oldest first.
        noise: Of the objectives together, between launches.
        surprised: Whether the last launch is so unlike its repeats that it is to be made again.
    """

    launches: tuple[TrialRecord, ...]
    before: tuple[TrialRecord, ...]
    drift: Drift | None
    jumps: tuple[Jump, ...]
    noise: LaunchNoise
    surprised: bool

    @property
    def every(self) -> tuple[TrialRecord, ...]:
        """All of them, in order."""
        return self.before + self.launches


def timeline(records: Sequence[TrialRecord], space: SearchSpace) -> Timeline:
    """Return the launches of a study as they can be compared.

    Launches that were made to find something out by chance, those of the search, say nothing of drift, jumps or noise:
    the best of them were lucky, and their repeats would look like a slower machine.

    Args:
        records: All finished launches, in order.
        space: The search space.
    """
    speed, hours = together(space), study_hours(records)
    since = [record for record in records if measured_values(record, space) is not None and speed(record) is not None]
    before: list[TrialRecord] = []
    jumps: list[Jump] = []
    while (jump := find_jump(_repeats(since, speed, hours))) is not None:
        before = [_scaled(record, math.exp(jump.change.est)) for record in before]
        before += [_scaled(record, math.exp(jump.change.est)) for record in since if record.trial < jump.after]
        since = [record for record in since if record.trial >= jump.after]
        jumps.append(jump)
    repeats = _repeats(since, speed, hours)
    drift = find_drift(repeats)
    corrected = drift is not None and drift.shown
    doubts = [0.0] * len(since)
    if drift is not None and corrected:
        ages = [hours[since[-1].trial] - hours[record.trial] for record in since]
        since = [_scaled(record, drift.factor(age)) for record, age in zip(since, ages, strict=True)]
        doubts = [drift.doubt(age) for age in ages]
    noise = noise_of(since, speed, fitted=int(corrected))
    surprised = bool(repeats) and repeats[-1].trial == records[-1].trial and records[-1].role is Role.DRIFT
    return Timeline(
        launches=tuple(_scaled(record, 1.0, doubt) for record, doubt in zip(since, doubts, strict=True)),
        before=tuple(before),
        drift=drift,
        jumps=tuple(jumps),
        noise=noise,
        surprised=surprised and surprises(repeats[-1], repeats[:-1], noise_of_all_but_last(since, speed)),
    )


def noise_of(records: Sequence[TrialRecord], speed: Speed, *, fitted: int = 0) -> LaunchNoise:
    """Return how much this figure differs between launches of the same candidate, those of the search left out."""
    groups = by_candidate(record for record in records if record.role is not Role.SEARCH)
    return launch_noise(
        ([value for record in group if (value := speed(record)) is not None] for group in groups.values()),
        fitted=fitted,
    )


def noise_of_all_but_last(records: Sequence[TrialRecord], speed: Speed) -> float:
    """Return the noise a surprise is measured by: it must not hide in the noise it makes."""
    return noise_of(records[:-1], speed).relative_sd


def study_hours(records: Sequence[TrialRecord]) -> dict[int, float]:
    """Return the study clock in the middle of every launch, by its number: what was launched, not what passed."""
    spent, hours = 0.0, {}
    for record in records:
        hours[record.trial] = (spent + record.seconds.total / 2.0) / 3600.0
        spent += record.seconds.total
    return hours


def causes(jump: Jump, records: Sequence[TrialRecord]) -> list[str]:
    """Return what is known to have changed on the machine between the two launches of a jump.

    The one place where a jump meets the fingerprints that launches carry.
    """
    by_trial = {record.trial: record for record in records}
    known = set(map(str, by_trial[jump.before].environment_changes)) if jump.before in by_trial else set()
    between = [record for record in records if jump.before < record.trial <= jump.after]
    changes = [str(change) for record in between for change in record.environment_changes]
    return [change for change in dict.fromkeys(changes) if change not in known]


def _repeats(records: Sequence[TrialRecord], speed: Speed, hours: dict[int, float]) -> list[Repeat]:
    found = [(record, value) for record in records if record.role is not Role.SEARCH and (value := speed(record))]
    return [Repeat(r.trial, r.candidate.candidate_id, hours[r.trial], math.log(value.est)) for r, value in found]


def _scaled(record: TrialRecord, factor: float, doubt: float = 0.0) -> TrialRecord:
    """Return a launch as it would be on a machine that is `factor` times as fast, give or take a half-width of ln."""
    if (factor, doubt) == (1.0, 0.0):
        return record
    return dataclasses.replace(record, levels=tuple(_level(level, factor, doubt) for level in record.levels))


def _level(level: LevelMeasurement, factor: float, doubt: float) -> LevelMeasurement:
    estimates = {name: getattr(level, name).scaled(factor).blurred(doubt) for name in _FASTER}
    estimates["cycle_ms"] = level.cycle_ms.scaled(1.0 / factor).blurred(doubt)
    times = {name: getattr(level, name) / factor for name in _SLOWER if name != "cycle_ms"}
    return dataclasses.replace(level, **estimates, **times)
