"""The chance that speculation pays: that its best candidate is faster than the best one without."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spectune.search.guided.chart import Chart
from spectune.search.guided.evidence import Evidence
from spectune.search.guided.landscape import Landscape
from spectune.search.guided.physics import Physics, Target

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

DRAWS = 1000
LEAST_FEASIBLE = 0.02
LEAST_INFLATION = 1.5  # of the deviations: beliefs are narrower than truth where a machine has laws of its own
FINALISTS = 60
"""Candidates of each branch with the best expectations: with so many the chance agrees with how often random machines
near their break-even turn out to pay; with all, somebody always looks lucky."""


def chance_by_priors(chart: Chart, goals: tuple[Target, ...], borrowed: Sequence[Evidence]) -> float | None:
    """Return the chance before anything was measured, by what is guessed of drafters and cycles; None without physics.

    Args:
        chart: The candidates.
        goals: What is optimised.
        borrowed: Launches of an earlier study, of which only the acceptance is known.
    """
    if any(goal.load is None for goal in goals):
        return None
    settings = [chart.setting(item.candidate) for item in borrowed]
    physics, works = Physics.fit(borrowed, settings, chart.drafters, chart.depth), chart.works
    speculative = np.array([setting.drafter is not None for setting in works.settings])
    if speculative.all() or not speculative.any():
        return None
    features = physics.features(works, goals, works.drafts)
    doubts = np.random.default_rng(0).standard_normal((DRAWS, features.shape[1]))
    scores = physics.expected(works, goals).mean(axis=0) + doubts @ features.T
    return float(np.mean(scores[:, speculative].max(axis=1) > scores[:, ~speculative].max(axis=1)))


def chance(beliefs: Landscape, failed: Booleans, inflation: float) -> float | None:
    """Return the chance by what is believed of all candidates; None where a branch has none that may run.

    Of the draws in which any candidate runs within the bounds.

    Args:
        beliefs: After some launches.
        failed: Candidates that were launched and did not run.
        inflation: By how much the last launches missed their forecasts, in standard deviations.
    """
    chart = beliefs.chart
    speculates = np.array([setting.drafter is not None for setting in chart.works.settings], np.float64)
    speculative, open_ = chart.spread(speculates) > 0.0, chart.table.allowed & ~failed
    branches = open_ & speculative, open_ & ~speculative
    if not all(branch.any() for branch in branches):
        return None
    numbers = [_finalists(beliefs, branch) for branch in branches]
    rng, together = np.random.default_rng(0), np.concatenate(numbers)
    draws = beliefs.draws(together, DRAWS, rng, max(LEAST_INFLATION, inflation))
    draws = np.where(rng.random(draws.shape) < beliefs.feasible[together], draws, -np.inf)
    theirs, plain = draws[:, : len(numbers[0])].max(axis=1), draws[:, len(numbers[0]) :].max(axis=1)
    decided = np.isfinite(theirs) | np.isfinite(plain)  # elsewhere nothing runs within the bounds
    return float(np.mean(theirs[decided] > plain[decided])) if decided.mean() >= LEAST_FEASIBLE else None


def _finalists(beliefs: Landscape, among: Booleans) -> npt.NDArray[np.int64]:
    likely = among & (beliefs.feasible > LEAST_FEASIBLE)
    numbers = np.flatnonzero(likely if likely.any() else among)
    return numbers[np.argsort(-beliefs.score[numbers])[:FINALISTS]]
