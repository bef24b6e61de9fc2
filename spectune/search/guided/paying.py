"""The chance that speculation pays: that its best candidate is faster than the best one without."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spectune.search.guided.landscape import Landscape

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

DRAWS = 1000
LEAST_FEASIBLE = 0.02
FINALISTS = 10
"""Candidates of each branch with the best expectations. The more there are, the surer somebody looks lucky, in the
larger branch above all. Of 1 to 60, with deviations as they are or inflated, 10 as they are agreed best with how often
random machines near their break-even pay (91 of `benchmarks/trust_profiles.machine`)."""


def chance(
    beliefs: Landscape, failed: Booleans, launches: tuple[int, int], *, inflation: float, scatter: float
) -> float | None:
    """Return the chance by what is believed of all candidates; None where a branch has none that may run.

    Of the draws in which any candidate runs within the bounds.

    Args:
        beliefs: After some launches.
        failed: Candidates that were launched and did not run.
        launches: How many were measured with speculation, and without; at least one each.
        inflation: By how much the last launches missed their forecasts, in standard deviations, at least 1.
        scatter: Standard deviation of the log score from launch to launch, as the study itself tells. What of it the
            beliefs take for no noise may lie between the branches.
    """
    chart = beliefs.chart
    speculates = np.array([setting.drafter is not None for setting in chart.works.settings], np.float64)
    speculative, open_ = chart.spread(speculates) > 0.0, chart.table.allowed & ~failed
    branches = open_ & speculative, open_ & ~speculative
    if not all(branch.any() for branch in branches):
        return None
    numbers = [_finalists(beliefs, branch) for branch in branches]
    rng, together = np.random.default_rng(0), np.concatenate(numbers)
    draws = beliefs.draws(together, DRAWS, rng, inflation)
    draws[:, : len(numbers[0])] += rng.standard_normal((DRAWS, 1)) * _between(launches, scatter, beliefs.residual.noise)
    draws = np.where(rng.random(draws.shape) < beliefs.feasible[together], draws, -np.inf)
    theirs, plain = draws[:, : len(numbers[0])].max(axis=1), draws[:, len(numbers[0]) :].max(axis=1)
    decided = np.isfinite(theirs) | np.isfinite(plain)  # elsewhere nothing runs within the bounds
    return float(np.mean(theirs[decided] > plain[decided])) if decided.mean() >= LEAST_FEASIBLE else None


def _between(launches: tuple[int, int], scatter: float, believed: float) -> float:
    """Return the deviation that the noise which is not believed in leaves between the means of both branches."""
    return math.sqrt(max(0.0, scatter**2 - believed**2) * sum(1.0 / count for count in launches))


def _finalists(beliefs: Landscape, among: Booleans) -> npt.NDArray[np.int64]:
    likely = among & (beliefs.feasible > LEAST_FEASIBLE)
    numbers = np.flatnonzero(likely if likely.any() else among)
    return numbers[np.argsort(-beliefs.score[numbers])[:FINALISTS]]
