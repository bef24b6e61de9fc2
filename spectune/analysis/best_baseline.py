"""The best of several configurations when it is not certain which one that is.

The best baseline measured is not always the best baseline: another that was launched once or twice may be a little
faster. Taking the measured one as the best would make every speedup too large, taking the luckiest launch too small.
So the speed of the best is a distribution: that of the largest of independent normal ones. The one that was relaunched
has its own mean; the others, picked by nobody, are shrunk towards the mean of all (empirical Bayes, Efron and Morris
1975), because a single lucky launch is mostly luck. Mean and variance of the largest follow by integrating the product
of the distribution functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

import numpy as np

SETTINGS_SD = 0.02
"""Assumed relative standard deviation between the true speeds of system settings, until they are seen to differ."""
_ASSUMED_WEIGHT = 2.0
_POINTS = 160
_REACH = 5.0


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of ln speed: normal with this mean and this variance."""

    mean: float
    variance: float


def best_of(relaunched: Known, others: Sequence[Known]) -> Known:
    """Return what is known of the largest of all.

    Args:
        relaunched: The one that was picked as the best and launched again.
        others: Launched a few times each.
    """
    everyone = [relaunched, *others]
    middle = fmean(one.mean for one in everyone)
    spread = sum((one.mean - middle) ** 2 for one in everyone) - sum(one.variance for one in others)
    settings = (_ASSUMED_WEIGHT * SETTINGS_SD**2 + max(0.0, spread)) / (_ASSUMED_WEIGHT + len(others))
    shrunk = [_shrunk(one, middle, settings) for one in others]
    floor = relaunched.mean - _REACH * math.sqrt(relaunched.variance)
    return _largest([relaunched, *(one for one in shrunk if one.mean + _REACH * math.sqrt(one.variance) > floor)])


def _shrunk(one: Known, middle: float, settings: float) -> Known:
    weight = settings / (settings + one.variance)
    return Known(middle + weight * (one.mean - middle), weight * one.variance)


def _largest(everyone: Sequence[Known]) -> Known:
    if len(everyone) == 1:
        return everyone[0]
    reach = [_REACH * math.sqrt(one.variance) for one in everyone]
    low = max(one.mean - far for one, far in zip(everyone, reach, strict=True))
    high = max(one.mean + far for one, far in zip(everyone, reach, strict=True))
    edges = np.linspace(low, high, _POINTS)
    below = np.ones(_POINTS)
    for one in everyone:
        below *= list(map(NormalDist(one.mean, math.sqrt(one.variance)).cdf, edges.tolist()))
    share = np.diff(below, prepend=0.0)
    share /= share.sum()
    mean = float(share @ edges)
    return Known(mean, float(share @ (edges - mean) ** 2))
