"""What a study judges its candidates by, in words, and a comparison in them."""

from __future__ import annotations

import math
from dataclasses import replace

from spectune.analysis.comparison import Comparison
from spectune.analysis.estimate import Estimate
from spectune.analysis.verdict import TOO_SHORT
from spectune.search.evidence.outcome import TOGETHER
from spectune.space import SearchSpace
from spectune.space.metrics import METRICS


def measure(space: SearchSpace) -> str:
    """Return what a study judges its candidates by, in words."""
    goals = " and ".join(goal(objective.name) for objective in space.objectives)
    return goals if len(space.objectives) == 1 else f"the geometric mean of {goals}"


def goal(objective: str) -> str:
    """Return the name of an objective in words: `decode_speed@c1` is the decode speed at c1."""
    if objective == TOGETHER:
        return objective
    metric, _, level = objective.partition("@")
    return f"{METRICS[metric].words} at {level}"


def gain(comparison: Comparison) -> str:
    """Return a comparison by an objective with its interval, and what is not shown of it."""
    found, what = as_measured(comparison), goal(comparison.level)
    if not comparison.long_enough:
        return f"{found.est:.2f} × the {what} ({TOO_SHORT})"
    remark = {"pays": "", "loses": ", slower", "unclear": ", not decided"}[comparison.verdict]
    return f"{found.est:.2f} × the {what} ({found.lo:.2f}–{found.hi:.2f}{remark})"


def as_measured(comparison: Comparison) -> Estimate:
    """Return the speedup as the ratio of the figure itself: of a time, it is the inverse."""
    speedup, metric = comparison.judged, METRICS.get(comparison.level.partition("@")[0])
    if metric is None or metric.direction == "maximize":
        return speedup
    if not comparison.long_enough:
        return replace(speedup, est=1.0 / speedup.est)
    return Estimate(*(1.0 / end if end > 0.0 else math.inf for end in (speedup.est, speedup.hi, speedup.lo)))
