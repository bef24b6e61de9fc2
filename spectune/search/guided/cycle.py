"""Cycle time of every setting at every level: work terms with coefficients that cannot be negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from spectune.search.evidence.setting import Setting

Floats = npt.NDArray[np.float64]

SHORTEST_MS = 1e-6
ERROR = 0.02  # relative, of one level of one launch
SATURATIONS = (6.0, 24.0, 96.0)  # tokens: work that stops growing, as that of experts once all are read
KNEES = (48, 128, 256, 512)  # tokens beyond which work grows faster: compute bound

# Term → (guess, spread), in cycles of the baseline.
PRIORS: dict[str, tuple[float, float]] = {
    "step": (1.0, 0.3),
    "eager step": (0.6, 0.8),
    "verify": (0.1, 0.5),
    "eager verify": (0.6, 0.8),
    "draft": (0.08, 0.1),
    "eager draft": (0.03, 0.1),
    "draft branch": (0.0005, 0.002),
    "token": (0.004, 0.015),
    "request": (0.001, 0.005),
    **{f"saturation {tokens:g}": (0.0, 0.3) for tokens in SATURATIONS},
    **{f"knee {tokens}": (0.0, 0.004) for tokens in KNEES},
}
DRAFTER_PRIOR = (0.0, 0.05)  # what a draft step of one drafter costs beyond the others'


@dataclass(frozen=True)
class CycleModel:
    """Fitted coefficients.

    Attributes:
        coefficients: ms per unit of each term, all ≥ 0.
        spreads: Their prior standard deviations; half of it where the fit is at the bound.
    """

    coefficients: Floats
    spreads: Floats

    @classmethod
    def fit(cls, rows: Floats, times_ms: Floats, baseline_ms: float, errors: Floats | float = 1.0) -> CycleModel:
        """Fit by non-negative least squares of relative errors, with a ridge towards the guesses.

        Args:
            rows: Work terms of each measurement, as `terms` gives them.
            times_ms: Cycle times, one per row.
            baseline_ms: A cycle of the baseline, in which the guesses are counted.
            errors: Error of each cycle time, relative to that of a launch of this study.
        """
        drafters = rows.shape[1] - len(PRIORS)
        priors = np.array([*PRIORS.values(), *[DRAFTER_PRIOR] * drafters]) * baseline_ms
        weights = 1.0 / (ERROR * errors * times_ms)
        left = np.vstack([rows * weights[:, None], np.diag(1.0 / priors[:, 1])])
        right = np.concatenate([times_ms * weights, priors[:, 0] / priors[:, 1]])
        solution, _ = nnls(left, right)
        return cls(solution, priors[:, 1] * np.where(solution > 0.0, 1.0, 0.5))

    def ms(self, rows: Floats) -> Floats:
        """Return the cycle time of each row of terms."""
        found: Floats = np.maximum(SHORTEST_MS, rows @ self.coefficients)
        return found

    def features(self, rows: Floats) -> Floats:
        """Return what an error in each coefficient does to the log cycle, shape (rows, terms).

        An error of one prior spread, but of no more than the coefficient: no cost is negative, so one that does not
        show is no reason to hope for more speed.
        """
        found: Floats = rows * np.minimum(self.spreads, self.coefficients) / self.ms(rows)[:, None]
        return found


def terms(settings: Sequence[Setting], concurrency: int, drafters: Sequence[str]) -> Floats:
    """Return how much of each work term a cycle has, shape (settings, terms).

    Args:
        settings: Of the launches.
        concurrency: Requests in flight.
        drafters: Those with a term of their own, behind the common ones.
    """
    at = {name: len(PRIORS) + index for index, name in enumerate(drafters)}
    rows = np.zeros((len(settings), len(PRIORS) + len(drafters)))
    for row, setting in zip(rows, settings, strict=True):
        batch = setting.batch(concurrency)
        width = setting.padded(batch)
        eager, speculative = width is None, setting.drafter is not None
        row[:9] = (
            1.0,
            eager and not speculative,
            speculative,
            eager and speculative,
            setting.steps,
            setting.steps * eager,
            setting.steps * batch * setting.topk,
            (width or batch) * setting.tokens - 1.0,
            batch,
        )
        if setting.drafter in at:
            row[at[setting.drafter]] = setting.steps
    further = rows[:, 7]
    for offset, saturation in enumerate(SATURATIONS, start=9):
        rows[:, offset] = 1.0 - np.exp(-further / saturation)
    for offset, knee in enumerate(KNEES, start=9 + len(SATURATIONS)):
        rows[:, offset] = np.maximum(0.0, further + 1.0 - knee)
    return rows
