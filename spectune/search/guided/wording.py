"""One sentence on why a candidate is launched.

What is expected is told with an open mind, as it was chosen: effects may be as large as is usual. The chance that
speculation pays, which stands beside it, is a sober one and by the mean of the objectives.
"""

from __future__ import annotations

import math

import numpy as np

from spectune.search.guided.choosing import Aim, Promise
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


def compared(space: SearchSpace, beliefs: Landscape, found: Promise) -> str:
    """Return what a candidate is launched for, and what is expected of it against the best so far."""
    by = "" if beliefs.physics is not None else ", by likeness alone since physics predicted badly"
    figures = f"{describe(space, beliefs, found.number)}, {math.expm1(found.better):+z.1%} against the best so far"
    return f"{_aim(space, found)}: {figures}, {found.sure:.0%} likely better{by}"


def _aim(space: SearchSpace, found: Promise) -> str:
    match found.aim:
        case Aim.GAIN:
            return "the most to gain" + " by the mean of the objectives" * (len(space.objectives) > 1)
        case Aim.DRAW:
            return "to look beyond the best prediction, the best of one draw from what is believed"
        case Aim.FRONT:
            first = int(np.argmax(found.weights))
            return f"for the Pareto front, with {space.objectives[first].name} counting {found.weights[first]:.0%}"
        case Aim.END:
            return "to see whether the search is over, the likeliest left to be better if effects are as large as usual"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
