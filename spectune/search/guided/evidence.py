"""What the guided search takes from a launch."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from spectune.analysis.measurement import LevelMeasurement
from spectune.search.evidence.setting import RELEVANT
from spectune.search.guided.mixture import ClassSurvival
from spectune.search.storage.records import Status, TrialRecord
from spectune.search.storage.values import figure, measured_values
from spectune.serving import FailureClass
from spectune.space import Candidate, SearchSpace
from spectune.space.names import ENV_PREFIX

LEAST_VERIFIES = 1.0
SMALLEST, LARGEST = 1e-6, 1e9  # of any figure in its unit: no machine gives less or more
LEAST_CLASSES = 2  # of prompts, for them to be told apart


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
        classes: The survival of each class of prompts; empty where there is one class, or no counters.
    """

    level: str
    concurrency: int | None
    context_tokens: float
    cycle_ms: float
    accept_length: float
    survival: tuple[float, ...]
    verifies: float
    classes: tuple[ClassSurvival, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LevelEvidence:
        """Read what `Evidence.dumps` wrote of it."""
        classes = [ClassSurvival(**{**one, "survival": tuple(one["survival"])}) for one in data.get("classes", [])]
        return cls(**{**data, "survival": tuple(data["survival"]), "classes": tuple(classes)})


@dataclass(frozen=True)
class Discount:
    """How much less a launch of an earlier study says than one of this study.

    Attributes:
        counted: Part of its counted cycles that still says something of acceptance.
        noise: Factor on the errors of its cycle times and figures of merit.
        risk: Probability that what failed there fails here.
    """

    counted: float
    noise: float
    risk: float


@dataclass(frozen=True)
class Evidence:
    """One launch.

    Attributes:
        candidate: What was launched.
        targets: Logarithm of each objective, then of each bounded metric; larger is better for objectives. None for a
            launch that gave no measurement to learn from.
        levels: What was measured at each level.
        failure: Its class, where the candidate is to blame.
        discount: Of a launch that an earlier study made; None for this study's own.
    """

    candidate: Candidate
    targets: tuple[float, ...] | None
    levels: tuple[LevelEvidence, ...] = ()
    failure: FailureClass | None = None
    discount: Discount | None = None

    def dumps(self) -> str:
        """Return it as one line of JSON: what an Optuna trial carries of it, and copies faster than nested data."""
        failure = None if self.failure is None else self.failure.value
        levels = [asdict(level) for level in self.levels]
        discount = {} if self.discount is None else {"discount": asdict(self.discount)}
        return json.dumps(
            {**self.candidate.to_json(), "targets": self.targets, "levels": levels, "failure": failure, **discount}
        )

    @classmethod
    def loads(cls, text: str) -> Evidence:
        """Read what `dumps` wrote."""
        data: dict[str, Any] = json.loads(text)
        return cls(
            candidate=Candidate.from_json(data),
            targets=None if data["targets"] is None else tuple(data["targets"]),
            levels=tuple(map(LevelEvidence.from_json, data["levels"])),
            failure=None if data["failure"] is None else FailureClass(data["failure"]),
            discount=None if data.get("discount") is None else Discount(**data["discount"]),
        )

    @property
    def noise(self) -> float:
        """Factor on the errors of its figures."""
        return 1.0 if self.discount is None else self.discount.noise

    @property
    def counted(self) -> float:
        """Part of its counted cycles that counts."""
        return 1.0 if self.discount is None else self.discount.counted


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


def borrowed_from(
    record: TrialRecord, theirs: SearchSpace, ours: SearchSpace, discount: Discount, *, same_machine: bool
) -> Evidence | None:
    """Return what a launch of an earlier study says in this one's terms; None where that is nothing.

    Args:
        record: The launch.
        theirs: The space it was made for; what was fixed there may be searched here.
        ours: The space of this study.
        discount: How much less it says.
        same_machine: Whether its times tell of this machine too; if not, only acceptance and failures do.
    """
    found = evidence_from(record, theirs)
    if found is None or record.status is Status.SUSPECT:
        return None
    fixed = {**theirs.engine.args, **{f"{ENV_PREFIX}{name}": value for name, value in theirs.engine.env.items()}}
    known = {name: value for name, value in fixed.items() if name in ours.parameters or name in RELEVANT}
    candidate = Candidate.of({**known, **record.candidate.values})
    levels = found.levels if same_machine else tuple(replace(level, concurrency=None) for level in found.levels)
    targets = _targets(record, ours) if same_machine else None
    return Evidence(candidate, targets, levels, found.failure, discount)


def _targets(record: TrialRecord, space: SearchSpace) -> tuple[float, ...] | None:
    """Return signed logarithms of the objectives, then logarithms of what is bounded."""
    values = measured_values(record, space)
    if values is None or min(values) <= 0.0:
        return None
    signs = [1.0 if objective.direction == "maximize" else -1.0 for objective in space.objectives]
    logs = [sign * math.log(_possible(value)) for sign, value in zip(signs, values, strict=True)]
    for constraint in space.constraints:
        level = record.level(constraint.level)
        bounded = figure(level, constraint.metric) if level is not None else 0.0
        if bounded <= 0.0:
            return None
        logs.append(math.log(_possible(bounded)))
    return tuple(logs)


def _possible(value: float) -> float:
    """Return a figure as far as a machine can give it: what is beyond says no more, and drowns all others."""
    return min(max(value, SMALLEST), LARGEST)


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
                cycle_ms=_possible(level.cycle_ms.est),
                accept_length=length,
                survival=tuple(level.per_position),
                verifies=verifies,
                classes=_classes(level),
            )
        )
    return tuple(found)


def _classes(level: LevelMeasurement) -> tuple[ClassSurvival, ...]:
    """Return the prompt classes of a level, by name; nothing where there is nothing to tell apart."""
    if len(level.per_position_by_class) < LEAST_CLASSES or not level.per_position:
        return ()
    requests = level.requests_by_class
    return tuple(
        ClassSurvival(name, requests[name] / level.n_requests, survival)
        for name, survival in sorted(level.per_position_by_class.items())
        if requests.get(name)
    )
