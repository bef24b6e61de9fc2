"""What is believed of the configurations of a branch, and of the best of them when it is not certain which that is.

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

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np

from spectune.analysis.estimate import Floats

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


@dataclass(frozen=True)
class Branch:
    """What is believed of the ln speeds of configurations: jointly normal.

    Attributes:
        names: The configurations.
        mean: One value for each.
        covariance: Of these.
    """

    names: tuple[str, ...]
    mean: Floats
    covariance: Floats

    @cached_property
    def largest(self) -> Known:
        """The speed of the best of them, whichever that is."""
        if len(self.names) == 1:
            return Known(float(self.mean[0]), float(self.covariance[0, 0]))
        spread = np.linalg.cholesky(self.covariance)
        draws = np.random.default_rng(0).standard_normal((_DRAWS // 2, len(self.names)))
        largest = np.concatenate([(self.mean + sign * draws @ spread.T).max(axis=1) for sign in (1.0, -1.0)])
        return Known(float(largest.mean()), float(largest.var()))

    def known(self, name: str) -> Known:
        """Return what is believed of a configuration."""
        index = self.names.index(name)
        return Known(float(self.mean[index]), float(self.covariance[index, index]))

    def expected(self, name: str) -> float:
        """Return the expected ln speed of a configuration."""
        return float(self.mean[self.names.index(name)])

    def lead(self, one: str, other: str) -> Known:
        """Return what is believed of one's ln speed less another's."""
        i, j = self.names.index(one), self.names.index(other)
        variance = self.covariance[i, i] + self.covariance[j, j] - 2.0 * self.covariance[i, j]
        return Known(float(self.mean[i] - self.mean[j]), max(0.0, float(variance)))


def believed(configurations: Mapping[str, Seen]) -> Branch:
    """Return what is believed of configurations in the time of the confirmation; at least one was confirmed.

    Those that were not are left out where nothing was launched in both times: they cannot be brought to this one.
    """
    confirmed = [one.confirmed for one in configurations.values() if one.confirmed is not None]
    assert confirmed, "without a confirmation nothing is known of its time"
    shifted = any(one.searched is not None and one.confirmed is not None for one in configurations.values())
    kept = {name: one for name, one in configurations.items() if shifted or one.confirmed is not None}
    if len(kept) == 1:
        return Branch(tuple(kept), np.array([confirmed[0].mean]), np.array([[confirmed[0].variance]]))
    count = len(kept)
    # One unknown for each configuration, and the shift last; what is subtracted is the mean that nobody knows.
    precision = np.zeros((count + 1, count + 1))
    precision[:count, :count] = (np.eye(count) - 1.0 / count) / _settings_variance(kept.values())
    weighted = np.zeros(count + 1)
    origin = confirmed[0].mean
    for index, one in enumerate(kept.values()):
        for known, shift in ((one.searched if shifted else None, 1.0), (one.confirmed, 0.0)):
            if known is not None:
                row = np.zeros(count + 1)
                row[index], row[count] = 1.0, shift
                precision += np.outer(row, row) / known.variance
                weighted += row * (known.mean - origin) / known.variance
    unknowns = count + shifted
    covariance = np.asarray(np.linalg.inv(precision[:unknowns, :unknowns]), dtype=np.float64)
    mean = origin + (covariance @ weighted[:unknowns])[:count]
    return Branch(tuple(kept), mean, covariance[:count, :count])


def _settings_variance(configurations: Collection[Seen]) -> float:
    """How much the true speeds differ, by the launches of the search; without any, by the others."""
    searched = [one.searched for one in configurations if one.searched is not None]
    seen = searched or [one.confirmed for one in configurations if one.confirmed is not None]
    if len(seen) < 2:
        return SETTINGS_SD**2
    middle, others = fmean(one.mean for one in seen), len(seen) - 1
    spread = sum((one.mean - middle) ** 2 for one in seen)
    luck = fmean(one.variance for one in seen) * others
    return (_ASSUMED_WEIGHT * SETTINGS_SD**2 + max(0.0, spread - luck)) / (_ASSUMED_WEIGHT + others)
