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


def sureness(means: Floats, deviations: Floats, best: float) -> Floats:
    """Return P(value > best)."""
    found: Floats = ndtr((np.asarray(means) - best) / np.maximum(deviations, EXACT))
    return found
