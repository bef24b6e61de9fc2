"""One sentence on why a candidate is launched."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from spectune.search.guided.landscape import Landscape
from spectune.space import SearchSpace

SURE_TO_RUN = 0.95


def describe(space: SearchSpace, beliefs: Landscape, number: int) -> str:
    """Return the figures that are expected of a candidate."""
    figures = [
        f"{objective.name} {_figure(math.exp(float(value) if objective.direction == 'maximize' else -float(value)))}"
        for objective, value in zip(space.objectives, beliefs.means[:, number], strict=False)
    ]
    feasible = float(beliefs.feasible[number])
    fate = "runs within the constraints" if space.constraints else "runs"
    return f"expected {' and '.join(figures)}" + ("" if feasible >= SURE_TO_RUN else f" if it {fate} ({feasible:.0%})")


def compared(
    space: SearchSpace, beliefs: Landscape, number: int, weights: npt.NDArray[np.float64], *, better: float, sure: float
) -> str:
    """Return what is expected of a candidate against the best so far.

    Args:
        space: Its space.
        beliefs: What is believed.
        number: The candidate.
        weights: How much each objective counted in choosing it.
        better: Expected log improvement on the best so far, in these weights.
        sure: Probability of any improvement.
    """
    by = "" if beliefs.physics is not None else ", by likeness alone since physics predicted badly"
    mixture = ""
    if not np.allclose(weights, weights[0]):
        mixture = f", {space.objectives[int(np.argmax(weights))].name} counting {weights.max():.0%}"
    figures = describe(space, beliefs, number)
    return f"{figures}: {math.expm1(better):+z.1%} against the best so far{mixture}, {sure:.0%} likely better{by}"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
