"""What a launch may be worth, by normal beliefs."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

Floats = npt.NDArray[np.float64]

EXACT = 1e-9  # deviations below it count as this


def expected_improvement(means: Floats, deviations: Floats, best: float) -> Floats:
    """Return E[max(0, value − best)]."""
    scale = np.maximum(deviations, EXACT)
    z = (means - best) / scale
    found: Floats = scale * (z * ndtr(z) + np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi))
    return found


def sureness(means: Floats, deviations: Floats | float, best: float) -> Floats:
    """Return P(value > best)."""
    found: Floats = ndtr((np.asarray(means) - best) / np.maximum(deviations, EXACT))
    return found


def area_gains(points: Floats, front: Floats, reference: Floats) -> Floats:
    """Return by how much each point alone enlarges the area that a front covers, two objectives, larger is better.

    Args:
        points: Shape (n, 2).
        front: Points already there, shape (k, 2).
        reference: Corner from which areas count, shape (2,).
    """
    there = np.maximum(0.0, front - reference)
    there = there[np.argsort(-there[:, 0])]
    heights = np.concatenate([[0.0], np.maximum.accumulate(there[:, 1])])
    edges = np.concatenate([[np.inf], there[:, 0], [0.0]])  # between edges[i + 1] and edges[i] the front is heights[i]
    wide, high = np.maximum(0.0, points - reference).T
    widths = np.clip(wide[:, None], edges[1:], edges[:-1]) - edges[1:]
    found: Floats = (widths * np.maximum(0.0, high[:, None] - heights)).sum(axis=1)
    return found
