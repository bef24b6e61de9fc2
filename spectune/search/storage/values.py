"""A launch in Optuna's terms: parameters, objective values and constraints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from spectune.analysis.estimate import Estimate
from spectune.analysis.measurement import LevelMeasurement
from spectune.search.storage.records import Status, TrialRecord
from spectune.space import Candidate, Direction, IntegerRange, Parameter, SearchSpace, Value

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

LAUNCH = "launch"
"""Name of the constraint that says whether a launch gave measurements to learn from: −1 it did, 1 it did not."""

CANDIDATE = "candidate_id"
"""User attribute of every trial that spectune enters."""

# Stands where no feasible launch has been seen yet, so that nothing looks better than it.
NEVER_SEEN = {"maximize": 0.0, "minimize": 1e9}


def distribution(parameter: Parameter) -> BaseDistribution:
    """Return Optuna's form of a parameter."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if isinstance(parameter.domain, IntegerRange):
        return IntDistribution(parameter.domain.low, parameter.domain.high, step=parameter.domain.step)
    return CategoricalDistribution([encode(value) for value in parameter.values])


def encode(value: Value) -> str | int | float | bool:
    """Return a value in a form Optuna's storage can hold: lists become their words."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


def decode(parameter: Parameter, stored: Any) -> Value:
    """Return the parameter's value that `encode` turned into `stored`."""
    if isinstance(parameter.domain, IntegerRange):
        return int(stored)
    return next(value for value in parameter.values if encode(value) == stored and type(encode(value)) is type(stored))


def stored_params(candidate: Candidate, parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Return the candidate's values of what was searched; what does not matter to it is left out."""
    values = candidate.values
    return {
        p.name: encode(values[p.name]) for p in parameters if p.name in values and p.allows(values[p.name])
    }  # fmt: skip


def searched(space: SearchSpace) -> list[Parameter]:
    """Return the parameters that have something to choose."""
    return [parameter for parameter in space.parameters.values() if not parameter.is_fixed]


def directions(space: SearchSpace) -> list[Direction]:
    """Return Optuna's direction of each objective."""
    return [objective.direction for objective in space.objectives]


def figure(level: LevelMeasurement, metric: str) -> float:
    """Return the measured figure of a metric, without its interval."""
    value = getattr(level, metric)
    return value.est if isinstance(value, Estimate) else float(value)


def measured_values(record: TrialRecord, space: SearchSpace) -> list[float] | None:
    """Return the measured value of each objective; None unless the launch gave all of them as asked for."""
    if record.status is not Status.OK:
        return None
    values = []
    for objective in space.objectives:
        level = record.level(objective.level)
        if level is None:
            return None
        values.append(figure(level, objective.metric))
    return values


def score(record: TrialRecord, space: SearchSpace) -> float:
    """Return the mean logarithm of the objectives, minimised ones inverted: more is better, and scales cancel."""
    values = measured_values(record, space) or []
    signs = [1.0 if direction == "maximize" else -1.0 for direction in directions(space)]
    logs = [sign * math.log(value) if value > 0 else -math.inf for sign, value in zip(signs, values, strict=True)]
    return math.fsum(logs) / len(logs)


def values_and_constraints(
    record: TrialRecord, space: SearchSpace, others: Sequence[TrialRecord]
) -> tuple[list[float], dict[str, float]]:
    """Return what Optuna is told of a launch.

    A launch without measurements is told as complete and infeasible, with the worst value seen per objective: FAIL
    alone is invisible to Optuna's samplers.

    Args:
        record: The launch.
        space: Its search space.
        others: Launches whose measurements may stand in as the worst seen.
    """
    values = measured_values(record, space)
    if values is not None:
        return values, {LAUNCH: -1.0, **broken(record, space)}
    seen = [v for other in others if (v := measured_values(other, space)) is not None]
    placeholders = []
    for index, direction in enumerate(directions(space)):
        column = [row[index] for row in seen] or [NEVER_SEEN[direction]]
        placeholders.append(min(column) if direction == "maximize" else max(column))
    return placeholders, {LAUNCH: 1.0}


@dataclass(frozen=True)
class Bound:
    """One side of a constraint.

    Attributes:
        metric: What is bounded.
        level: Where.
        limit: The bound, above 0.
        most: Whether it is the largest value allowed; otherwise the smallest.
    """

    metric: str
    level: str
    limit: float
    most: bool

    @property
    def sign(self) -> str:
        """How it is written."""
        return "≤" if self.most else "≥"

    def measured(self, launches: Sequence[TrialRecord]) -> float | None:
        """Return the mean of launches of one candidate; None where none was measured there."""
        levels = [level for record in launches if (level := record.level(self.level)) is not None]
        return fmean(figure(level, self.metric) for level in levels) if levels else None

    def excess(self, launches: Sequence[TrialRecord]) -> float | None:
        """Return by how much that breaks the bound, relative to it; 0 or less where it is kept."""
        value = self.measured(launches)
        if value is None:
            return None
        return value / self.limit - 1.0 if self.most else 1.0 - value / self.limit

    def kept(self, launches: Sequence[TrialRecord]) -> bool:
        """Whether a candidate keeps it, as far as it was measured."""
        return (self.excess(launches) or 0.0) <= 0.0


def bounds(space: SearchSpace) -> list[Bound]:
    """Return what the constraints of a space allow."""
    sides = [(c, limit, most) for c in space.constraints for limit, most in ((c.max, True), (c.min, False))]
    return [Bound(c.metric, c.level, limit, most) for c, limit, most in sides if limit is not None]


def broken(record: TrialRecord, space: SearchSpace) -> dict[str, float]:
    """Return by how much each bound of the space is broken, relative to it; ≤ 0 where it is kept."""
    found = {f"{one.metric}{one.sign}{one.limit:g}@{one.level}": one.excess([record]) for one in bounds(space)}
    return {name: excess for name, excess in found.items() if excess is not None}


def keeps_bounds(launches: Sequence[TrialRecord], space: SearchSpace) -> bool:
    """Whether a candidate keeps every constraint of the space, on the mean of its launches."""
    return all(bound.kept(launches) for bound in bounds(space))


def attributes(candidate: Candidate, role: str, space: SearchSpace) -> Mapping[str, str]:
    """Return what is written beside a trial for whoever looks at it in optuna-dashboard."""
    return {CANDIDATE: candidate.candidate_id, "label": space.label(candidate), "role": role}
