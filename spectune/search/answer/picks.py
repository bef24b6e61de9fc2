"""One launch of a study picked by what somebody needs, or by its number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from spectune.analysis.best_baseline import Seen, believed
from spectune.analysis.comparison import known
from spectune.analysis.preference import preferred
from spectune.analysis.verdict import by_candidate as by_id
from spectune.errors import SpectuneError
from spectune.search.answer.sentence import is_confirmed
from spectune.search.evidence.noise import noise_of
from spectune.search.evidence.outcome import Evidence
from spectune.search.evidence.speeds import Speed, by_candidate, of_level, of_throughput, speeds
from spectune.search.storage.records import Status, TrialRecord
from spectune.search.storage.values import keeps_bounds
from spectune.space import SearchSpace

_TRIAL = re.compile(r"[0-9]{1,18}")


class Need(StrEnum):
    """What a launch can be picked for."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"
    BALANCED = "balanced"


@dataclass(frozen=True)
class Pick:
    """A picked launch.

    Attributes:
        name: What its files are named by: the need, or `trial-9`.
        record: The launch.
        why: What it was picked for, in a sentence.
        confirmed: Whether a launch made after its candidate was picked bears its figures out.
    """

    name: str
    record: TrialRecord
    why: str
    confirmed: bool


def check_pick(asked: str) -> None:
    """Refuse what is no way to pick a launch, whatever the study.

    Raises:
        SpectuneError: It is neither a need nor a number.
    """
    if _TRIAL.fullmatch(asked) is None and asked not in list(Need):
        raise SpectuneError(f"a pick is {', '.join(Need)} or the number of a launch, but got {asked!r}")


def picked(asked: str, records: Sequence[TrialRecord], evidence: Evidence, space: SearchSpace) -> Pick:
    """Return the launch of a need or a number.

    Latency is the decode speed of one request at the lightest load, throughput that of all requests at the heaviest,
    balanced what the verdict recommends. Of those that are about as fast, the preferred one (`analysis/preference`).

    Args:
        asked: `latency`, `throughput`, `balanced`, or the number of a launch.
        records: All launches of the study.
        evidence: What they say.
        space: Its search space.

    Raises:
        SpectuneError: There is no such launch, or it did not run as asked for.
    """
    check_pick(asked)
    if _TRIAL.fullmatch(asked):
        record = _numbered(int(asked), records)
        why = f"picked by its number, {record.trial}{_counted(record, evidence)}"
        return Pick(f"trial-{record.trial}", record, why, _confirmed(record, evidence))
    found, need = _needed(Need(asked), evidence, space)
    if found is None:
        raise SpectuneError(f"nothing to pick: {evidence.no_answer or f'no launch could be picked {need}'}")
    return Pick(asked, found, f"picked {need}", _confirmed(found, evidence))


def _needed(need: Need, evidence: Evidence, space: SearchSpace) -> tuple[TrialRecord | None, str]:
    """Return the launch for a need, None where nothing was measured, and what it was picked for."""
    if need is Need.BALANCED:
        record = next((r for r in reversed(evidence.records) if r.candidate == evidence.recommended), None)
        return record, "as balanced: what the study recommends over all objectives"
    loads = {level.name: level.in_flight(space.workload.output_tokens) for level in space.workload.levels}
    known = {name: load for name, load in loads.items() if load is not None} or dict.fromkeys(loads, 0)
    if need is Need.LATENCY:
        level = min(known, key=lambda name: known[name])
        return _fastest(evidence, space, of_level(level), level), f"for latency: decode speed of one request at {level}"
    level = max(known, key=lambda name: known[name])
    return _fastest(evidence, space, of_throughput(level), level), f"for throughput: tok/s of all requests at {level}"


def _counted(record: TrialRecord, evidence: Evidence) -> str:
    """Say of which launches the figures are, where not of this one alone."""
    counted = [r.trial for r in evidence.records if r.candidate == record.candidate]
    if counted == [record.trial]:
        return ""
    if not counted:
        return "; it does not count in its study any more"
    others = ", ".join(str(trial) for trial in counted if trial != record.trial)
    only = "" if record.trial in counted else " to confirm it, and only those launches count"
    return f"; the same configuration was launched again ({others}){only}"


def _confirmed(record: TrialRecord, evidence: Evidence) -> bool:
    return is_confirmed(record.candidate.candidate_id, evidence.records)


def _numbered(trial: int, records: Sequence[TrialRecord]) -> TrialRecord:
    record = next((record for record in records if record.trial == trial), None)
    if record is None:
        raise SpectuneError(f"there is no launch {trial} in this study (0 to {max(r.trial for r in records)})")
    if record.failure is not None:
        raise SpectuneError(
            f"launch {trial} failed ({record.failure.failure_class}: {record.failure.message}); pick one that ran"
        )
    if record.status is not Status.OK:
        found = "; ".join(f"{one.field} is {one.got}, not {one.wanted}" for one in record.suspect)
        raise SpectuneError(f"launch {trial} is suspect ({found}); it did not run as asked for, so pick another")
    return record


def _fastest(evidence: Evidence, space: SearchSpace, speed: Speed, level: str) -> TrialRecord | None:
    """Return the last launch of the fastest candidate, or of a simpler one that is preferred to it."""
    kept = [record for g in by_candidate(evidence.records).values() if keeps_bounds(g, space) for record in g]
    groups = by_id(speeds(kept, speed, level, space))
    if not groups:
        return None
    noise = noise_of(evidence.line.launches, speed)
    branch = believed({name: Seen(None, known(group, noise)) for name, group in groups.items()})
    chosen = preferred(branch, {name: group[0].simplicity for name, group in groups.items()}, noise.dof)
    return next(r for r in reversed(evidence.records) if r.candidate.candidate_id == chosen)
