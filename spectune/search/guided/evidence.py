"""What the guided search takes from a launch."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spectune.search.records import Status, TrialRecord
from spectune.search.values import figure, measured_values
from spectune.serving import FailureClass
from spectune.space import Candidate, SearchSpace

LEAST_VERIFIES = 1.0


@dataclass(frozen=True)
class LevelEvidence:
    """One level of a launch.

    Attributes:
        level: Its name.
        concurrency: Requests in flight; None of an open loop, whose cycles no single batch explains.
        context_tokens: Mean tokens a request holds, prompt and half of the answer.
        cycle_ms: Time of one cycle.
        accept_length: Mean tokens per cycle.
        survival: P(at least i drafts right), i from 1; empty where the engine gave no counters.
        verifies: How many cycles the survival rests on.
    """

    level: str
    concurrency: int | None
    context_tokens: float
    cycle_ms: float
    accept_length: float
    survival: tuple[float, ...]
    verifies: float


@dataclass(frozen=True)
class Evidence:
    """One launch.

    Attributes:
        candidate: What was launched.
        targets: Logarithm of each objective, then of each bounded metric; larger is better for objectives. None for a
            launch that gave no measurement to learn from.
        levels: What was measured at each level.
        failure: Its class, where the candidate is to blame.
    """

    candidate: Candidate
    targets: tuple[float, ...] | None
    levels: tuple[LevelEvidence, ...] = ()
    failure: FailureClass | None = None

    def dumps(self) -> str:
        """Return it as one line of JSON: what an Optuna trial carries of it, and copies faster than nested data."""
        failure = None if self.failure is None else self.failure.value
        levels = [asdict(level) for level in self.levels]
        return json.dumps({**self.candidate.to_json(), "targets": self.targets, "levels": levels, "failure": failure})

    @classmethod
    def loads(cls, text: str) -> Evidence:
        """Read what `dumps` wrote."""
        data: dict[str, Any] = json.loads(text)
        return cls(
            candidate=Candidate.from_json(data),
            targets=None if data["targets"] is None else tuple(data["targets"]),
            levels=tuple(LevelEvidence(**{**level, "survival": tuple(level["survival"])}) for level in data["levels"]),
            failure=None if data["failure"] is None else FailureClass(data["failure"]),
        )


def evidence_of(records: Sequence[TrialRecord], space: SearchSpace) -> list[Evidence]:
    """Return the evidence of launches in order; failures that were not their candidate's are left out."""
    return [found for record in records if (found := evidence_from(record, space)) is not None]


def evidence_from(record: TrialRecord, space: SearchSpace) -> Evidence | None:
    """Return the evidence of a launch; None when its failure was not the candidate's."""
    if record.status is Status.FAILED:
        failure = record.failure
        if failure is None or not failure.failure_class.blames_candidate:
            return None
        return Evidence(record.candidate, None, failure=failure.failure_class)
    return Evidence(record.candidate, _targets(record, space), _levels(record, space))


def _targets(record: TrialRecord, space: SearchSpace) -> tuple[float, ...] | None:
    """Return signed logarithms of the objectives, then logarithms of what is bounded."""
    values = measured_values(record, space)
    if values is None or min(values) <= 0.0:
        return None
    signs = [1.0 if objective.direction == "maximize" else -1.0 for objective in space.objectives]
    logs = [sign * math.log(value) for sign, value in zip(signs, values, strict=True)]
    for constraint in space.constraints:
        level = record.level(constraint.level)
        bounded = figure(level, constraint.metric) if level is not None else 0.0
        if bounded <= 0.0:
            return None
        logs.append(math.log(bounded))
    return tuple(logs)


def _levels(record: TrialRecord, space: SearchSpace) -> tuple[LevelEvidence, ...]:
    concurrency = {level.name: level.concurrency for level in space.workload.levels}
    found = []
    for level in record.levels:
        length = max(1.0, level.accept_length.est)
        counted = length > 1.0 or bool(level.per_position) or not record.candidate.speculative
        if level.level not in concurrency or level.cycle_ms.est <= 0.0 or not counted:
            continue  # without counters the cycle is not known either: it is accept length / speed
        verifies = level.n_requests * max(LEAST_VERIFIES, level.output_tokens - 1.0) / length
        found.append(
            LevelEvidence(
                level=level.level,
                concurrency=concurrency[level.level],
                context_tokens=level.prompt_tokens + level.output_tokens / 2.0,
                cycle_ms=level.cycle_ms.est,
                accept_length=length,
                survival=tuple(level.per_position),
                verifies=verifies,
            )
        )
    return tuple(found)
