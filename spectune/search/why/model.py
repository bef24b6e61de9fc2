"""The guided search's fitted acceptance and cycle time, asked other questions: parts of a cycle, and other settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spectune.analysis.estimate import Estimate
from spectune.bench.precision import t_quantile
from spectune.search.evidence.setting import Setting
from spectune.search.guided.cycle import ERROR, PRIORS, CycleModel, terms
from spectune.search.guided.evidence import Evidence, evidence_of
from spectune.search.guided.physics import Physics
from spectune.search.storage.records import TrialRecord
from spectune.space import NUM_STEPS, Candidate, SearchSpace

Floats = npt.NDArray[np.float64]

DRAFT = frozenset({"draft", "eager draft", "draft branch"})
HOST = frozenset({"verify"})
"""What a speculative cycle takes beyond a plain step, whatever it drafts."""
FEWEST_LAUNCHES = 3
"""Launches below which a fit is its own assumptions."""
TOO_FAR_OFF = 0.2
"""Relative error from which a fit foretells nothing: speculation hardly gains or loses more by another setting."""


@dataclass(frozen=True)
class StudyModel:
    """What all launches of a study that may be compared say of accept lengths and cycles.

    Attributes:
        physics: The fit.
        drafters: Those whose draft steps have a cost of their own.
        fixed: Arguments every launch has.
        spread: Covariance of the cycle's coefficients, shape (terms, terms).
        dof: Degrees of freedom behind it.
        error: Relative error of a fitted cycle, root mean square.
        depth: Deepest draft that is known of.
        loads: How many different numbers of requests in flight were measured.
    """

    physics: Physics
    drafters: tuple[str, ...]
    fixed: Mapping[str, Any]
    spread: Floats
    dof: float
    error: float
    depth: int
    loads: int

    @classmethod
    def fit(cls, records: Sequence[TrialRecord], space: SearchSpace) -> StudyModel | None:
        """Fit acceptance and cycle; None where too little was measured at closed-loop levels."""
        fixed = space.engine.args
        found = [item for item in evidence_of(records, space) if any(at.concurrency is not None for at in item.levels)]
        settings = [Setting.of({**fixed, **item.candidate.values}) for item in found]
        drafters = tuple(sorted({setting.drafter for setting in settings if setting.drafter is not None}))
        if len(found) < FEWEST_LAUNCHES or not drafters:
            return None
        depth = max(*_steps(space), *(setting.depth for setting in settings))
        physics = Physics.fit(found, settings, drafters, depth)
        rows, times = _measured(found, settings, drafters)
        spread, dof, error = _spread(physics.cycle, rows, times)
        loads = {level.concurrency for item in found for level in item.levels if level.concurrency is not None}
        return cls(physics, drafters, fixed, spread, dof, error, depth, len(loads))

    @property
    def foretells(self) -> bool:
        """Whether its cycles are close enough to those measured for anything to be told from it."""
        return self.error < TOO_FAR_OFF

    def setting(self, candidate: Candidate) -> Setting:
        """Return what of a candidate drives acceptance and cycle."""
        return Setting.of({**self.fixed, **candidate.values})

    def cycle_ms(self, setting: Setting, concurrency: int) -> float:
        """Return the cycle to expect of a setting."""
        return float(self.physics.cycle.ms(terms([setting], concurrency, self.drafters))[0])

    def part(self, setting: Setting, concurrency: int, names: Collection[str], *, without: bool = False) -> Estimate:
        """Return the time of some terms of a cycle, with a 95 % interval that is cut at 0.

        The interval is that of a linear combination of ridge coefficients, the residuals' variance in place of the
        assumed one where it is larger (Rasmussen and Williams, *Gaussian Processes*, section 2.1), with Student's
        quantile.

        Args:
            setting: Of the candidate.
            concurrency: Requests in flight.
            names: Terms; a drafter's own go with the draft.
            without: Take all other terms instead.
        """
        row = self._row(setting, concurrency, names, without=without)
        value = float(row @ self.physics.cycle.coefficients)
        half = t_quantile(0.975, self.dof) * float(np.sqrt(row @ self.spread @ row))
        return Estimate(value, max(0.0, value - half), value + half)

    def learned(self, setting: Setting, concurrency: int, names: Collection[str]) -> float:
        """Return how much less is unknown of these terms than before any launch: 1 all, 0 nothing."""
        row = self._row(setting, concurrency, names, without=False)
        before = float(np.linalg.norm(row * self.physics.cycle.spreads))
        return 1.0 - float(np.sqrt(row @ self.spread @ row)) / before if before else 0.0

    def _row(self, setting: Setting, concurrency: int, names: Collection[str], *, without: bool) -> Floats:
        columns = [name in names for name in PRIORS] + ["draft" in names] * len(self.drafters)
        mask = np.array(columns) != without
        found: Floats = np.where(mask, terms([setting], concurrency, self.drafters)[0], 0.0)
        return found


def _steps(space: SearchSpace) -> list[int]:
    parameter = space.parameters.get(NUM_STEPS)
    return [1] if parameter is None else [value for value in parameter.values if isinstance(value, int)] or [1]


def _measured(found: Sequence[Evidence], settings: Sequence[Setting], drafters: Sequence[str]) -> tuple[Floats, Floats]:
    rows, times = [], []
    for item, setting in zip(found, settings, strict=True):
        for level in item.levels:
            if level.concurrency is not None:
                rows.append(terms([setting], level.concurrency, drafters)[0])
                times.append(level.cycle_ms)
    return np.array(rows), np.array(times)


def _spread(model: CycleModel, rows: Floats, times_ms: Floats) -> tuple[Floats, float, float]:
    """Return covariance of the coefficients, degrees of freedom and relative error of a fit."""
    misses = model.ms(rows) / times_ms - 1.0
    error = float(np.sqrt(np.mean(misses**2)))
    scale = max(ERROR, error)
    left = np.vstack([rows / (scale * times_ms)[:, None], np.diag(1.0 / model.spreads)])
    used = int(np.count_nonzero(model.coefficients))
    spread = np.linalg.inv(left.T @ left).astype(np.float64)
    return spread, float(max(1, len(times_ms) - used)), error
