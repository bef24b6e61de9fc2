"""The best of several configurations when it is not certain which one that is.

The best baseline measured is not always the best baseline: another that was launched once or twice may be a little
faster. Taking the measured one as the best would make every speedup too large, taking the luckiest launch too small.
So the speed of the best is a distribution: that of the largest of jointly normal ones.

The model. The true ln speeds of the configurations are normal around a mean nobody knows; how much they differ is
assumed until it is seen (empirical Bayes, Efron and Morris 1975), so that a single lucky launch is taken for mostly
luck. Launches of the search and those of the confirmation differ by a shift of which nothing is assumed either: the
machine may have changed between them. So the launches of the search say how the configurations differ from each other,
and only relaunched ones say how fast the best is. That is a linear model with normal errors (Gelman et al., *Bayesian
Data Analysis*, section 14.2); mean and variance of the largest follow from draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

SETTINGS_SD = 0.02
"""Assumed relative standard deviation between the true speeds of system settings, until they are seen to differ."""
_ASSUMED_WEIGHT = 2.0
_DRAWS = 4096


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of ln speed: normal with this mean and this variance."""

    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What the launches of one configuration say.

    Attributes:
        searched: Those of the search; None without any.
        confirmed: Those made after it had been picked, beside what it is compared with; None without any.
    """

    searched: Known | None
    confirmed: Known | None


def best_of(configurations: Sequence[Seen]) -> Known:
    """Return what is known of the largest of all, in the time of the confirmation; at least one was confirmed."""
    relaunched = [one for one in configurations if one.confirmed is not None]
    confirmed = [one.confirmed for one in relaunched if one.confirmed is not None]
    assert confirmed, "without a confirmation nothing is known of its time"
    shifted = any(one.searched is not None for one in relaunched)
    if not shifted:  # the others cannot be brought to this time
        configurations = relaunched
    if len(configurations) == 1:
        return confirmed[0]
    count = len(configurations)
    # One unknown for each configuration, and the shift last; what is subtracted is the mean that nobody knows.
    precision = np.zeros((count + 1, count + 1))
    precision[:count, :count] = (np.eye(count) - 1.0 / count) / _settings_variance(configurations)
    weighted = np.zeros(count + 1)
    origin = confirmed[0].mean
    for index, one in enumerate(configurations):
        for known, shift in ((one.searched, 1.0), (one.confirmed, 0.0)):
            if known is not None:
                row = np.zeros(count + 1)
                row[index], row[count] = 1.0, shift
                precision += np.outer(row, row) / known.variance
                weighted += row * (known.mean - origin) / known.variance
    unknowns = count + shifted
    covariance = np.linalg.inv(precision[:unknowns, :unknowns])
    mean, spread = (covariance @ weighted[:unknowns])[:count], np.linalg.cholesky(covariance[:count, :count])
    draws = np.random.default_rng(0).standard_normal((_DRAWS // 2, count))
    largest = np.concatenate([(mean + sign * draws @ spread.T).max(axis=1) for sign in (1.0, -1.0)])
    return Known(origin + float(largest.mean()), float(largest.var()))


def _settings_variance(configurations: Sequence[Seen]) -> float:
    """How much the true speeds differ, by the launches of the search."""
    searched = [one.searched for one in configurations if one.searched is not None]
    if len(searched) < 2:
        return SETTINGS_SD**2
    middle, others = fmean(one.mean for one in searched), len(searched) - 1
    spread = sum((one.mean - middle) ** 2 for one in searched)
    luck = fmean(one.variance for one in searched) * others
    return (_ASSUMED_WEIGHT * SETTINGS_SD**2 + max(0.0, spread - luck)) / (_ASSUMED_WEIGHT + others)
