"""What parameters that the cost model has no term for multiply a cycle by."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectune.analysis.estimate import Floats
from spectune.calibration.observed import Observed
from spectune.search import TrialRecord
from spectune.space import UNSET, SearchSpace, Value

# The cost model's own terms.
EXPLAINED = frozenset(
    {
        "speculative-algorithm", "speculative-draft-model-path", "speculative-num-steps", "speculative-eagle-topk",
        "speculative-num-draft-tokens", "cuda-graph-bs-decode", "cuda-graph-max-bs-decode", "disable-cuda-graph",
        "disable-decode-cuda-graph", "max-running-requests", "mem-fraction-static",
    }
)  # fmt: skip
LEAST_LAUNCHES = 2  # with the value, and without it
SURE = 2.5  # standard errors from no effect; several values are tried at once
LEAST = 0.005  # relative: smaller ones are not worth a line


@dataclass(frozen=True)
class ParameterEffect:
    """A factor on the cycle of launches with a value, beside those with the commonest one."""

    name: str
    value: Value
    factor: float

    def to_when(self) -> dict[str, Any]:
        """Return the condition of a profile."""
        return {self.name: self.value}


def parameter_effects(
    points: Sequence[Observed],
    expected_ms: Sequence[float],
    candidates: Mapping[str, TrialRecord],
    space: SearchSpace,
) -> list[ParameterEffect]:
    """Regress what the terms miss on the values of all other parameters at once.

    Ordinary least squares on ln(measured / expected), with a standard error from the candidates' own means, since
    levels of one launch share its noise. Values that were always launched together have no factor of their own: the
    solution of the least norm gives every other one the same factor as any solution does.

    Args:
        points: Levels of launches.
        expected_ms: The cycle of each, by the terms alone.
        candidates: candidate_id → one of its records.
        space: The search space.
    """
    missed: dict[str, list[float]] = defaultdict(list)
    for one, expected in zip(points, expected_ms, strict=True):
        missed[one.candidate_id].append(math.log(one.cycle_ms / expected))
    ids = list(missed)
    target = np.array([float(np.mean(missed[name])) for name in ids])
    held = held_values([candidates[key] for key in ids], space)
    matrix = np.column_stack([np.ones(len(ids)), *held.values()])
    rank = int(np.linalg.matrix_rank(matrix))
    if not held or len(ids) <= rank:
        return []
    solved, *_ = np.linalg.lstsq(matrix, target, rcond=None)
    variance = float(np.sum((target - matrix @ solved) ** 2)) / (len(ids) - rank)
    errors = np.sqrt(np.diag(variance * np.linalg.pinv(matrix.T @ matrix)))
    return [
        ParameterEffect(name, value, math.exp(solved[column]))
        for column, (name, value) in enumerate(held, start=1)
        if np.linalg.matrix_rank(np.delete(matrix, column, axis=1)) < rank
        and abs(solved[column]) > max(LEAST, SURE * errors[column])
    ]


def held_values(records: Sequence[TrialRecord], space: SearchSpace) -> dict[tuple[str, Value], Floats]:
    """Return which candidates hold a value, for each that may have an effect of its own: 1.0 where one does, else 0.0.

    Left out are parameters that the terms explain, the commonest value of each other one, with which the others are
    compared, and values that too few candidates hold, or lack.

    Args:
        records: One of each candidate.
        space: The search space.
    """
    columns = {}
    for name in (name for name in space.parameters if name not in EXPLAINED):
        values = [record.candidate.values.get(name, UNSET) for record in records]
        commonest = Counter(map(repr, values)).most_common(1)[0][0]
        for value in dict.fromkeys(values):
            held = np.array([float(repr(other) == repr(value)) for other in values])
            if repr(value) != commonest and LEAST_LAUNCHES <= held.sum() <= len(records) - LEAST_LAUNCHES:
                columns[name, value] = held
    return columns


def factors_of(
    points: Sequence[Observed], candidates: Mapping[str, TrialRecord], effects: Sequence[ParameterEffect]
) -> dict[int, float]:
    """Return what the effects multiply the cycle of each point by."""
    found = {}
    for index, one in enumerate(points):
        values = candidates[one.candidate_id].candidate.values
        holding = (effect.factor for effect in effects if values.get(effect.name, UNSET) == effect.value)
        found[index] = math.prod(holding)
    return found
