"""Drafters that cannot pay, however often they are right: S + 1 tokens a cycle are not enough at their cycle time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from spectune.search.guided.landscape import Landscape

Floats = npt.NDArray[np.float64]

MARGIN = 0.10  # of the log score, for what the predicted cycle may be wrong by


def out_of_reach(beliefs: Landscape, best_baseline: float, launched: frozenset[str]) -> Mapping[str, str]:
    """Return the drafters that no accept length makes as fast as a baseline, each with the reason.

    Args:
        beliefs: With physics; without it, and where an objective is none of speed, nothing is known to be out of reach.
        best_baseline: Log score of the best candidate without speculation.
        launched: Drafters whose cycle time was measured.
    """
    goals = beliefs.targets[: beliefs.goals]
    if beliefs.physics is None or any(target.load is None for target in goals):
        return {}
    works = beliefs.chart.works
    perfect = np.array([setting.depth + 1.0 for setting in works.settings])
    expected = beliefs.physics.lengths(works)
    gained = [0.0 if target.metric == "cycle_ms" else 1.0 for target in goals]
    score = beliefs.physics.expected(works, goals).mean(axis=0) + np.mean(gained) * np.log(perfect / expected)
    found = {}
    for drafter in beliefs.chart.drafters:
        own = np.array([setting.drafter == drafter for setting in works.settings])
        bound = float(score[own].max())
        if drafter in launched and bound < best_baseline - MARGIN:
            found[drafter] = (
                f"{drafter} is dropped: with every draft right it would still be "
                f"{-np.expm1(bound - best_baseline):.0%} slower than no speculation"
            )
    return found
