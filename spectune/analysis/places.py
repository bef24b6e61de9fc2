"""How much faster one place is than another, and what that leaves open in a comparison.

A place is a machine, or a group of its GPUs. Two of them that should be alike are not: a few percent between machines
of one order are common. Configurations that were launched in both tell the difference of ln speed, each by the
difference of its two means, weighted by n·m / (n + m): the least-squares estimate of a block effect in an unbalanced
two-way layout (Scheffé, *The Analysis of Variance*, section 4.2). It is shrunk towards none as the mean of a normal
posterior (Gelman et al., *Bayesian Data Analysis*, section 2.5), so that one pair of launches is not taken for more
than it is.

Where two configurations were launched equally often in every place, the difference cancels. Elsewhere what is not known
of it counts by how much their shares differ.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from spectune.analysis.estimate import NORMAL_95, Estimate

PRIOR_SD = 0.05
"""Assumed standard deviation of ln speed between places: a tenth is a lot, a few percent are usual."""


@dataclass(frozen=True, slots=True)
class Shift:
    """Difference of ln speed between two places as their launches show it.

    Attributes:
        mean: Of the other place, minus that of the first.
        weight: Its variance is that of one launch over this; 0 without a configuration launched in both.
    """

    mean: float
    weight: float


@dataclass(frozen=True, slots=True)
class Factor:
    """How fast a place is, relative to the one of reference.

    Attributes:
        log: ln of its speed over that of the reference.
        variance: Of that.
    """

    log: float = 0.0
    variance: float = 0.0

    @property
    def speed(self) -> Estimate:
        """Speed over that of the reference, 95 % interval."""
        return Estimate.of_log(self.log, NORMAL_95 * math.sqrt(self.variance))


def shift(shared: Iterable[tuple[Sequence[float], Sequence[float]]]) -> Shift:
    """Return the difference between two places.

    Args:
        shared: Per configuration, ln speed of its launches in the first place and in the other; those that miss in
            one of the two say nothing.
    """
    total, weight = 0.0, 0.0
    for here, there in shared:
        if here and there:
            one = len(here) * len(there) / (len(here) + len(there))
            total, weight = total + one * (fmean(there) - fmean(here)), weight + one
    return Shift(total / weight if weight else 0.0, weight)


def shrunk(seen: Shift, variance: float) -> Factor:
    """Return what is believed of a difference, given the variance of ln speed of one launch."""
    certainty = seen.weight / variance + 1.0 / PRIOR_SD**2
    return Factor(seen.mean * seen.weight / variance / certainty, 1.0 / certainty)


def apart(one: Iterable[str], other: Iterable[str], variances: Mapping[str, float]) -> float:
    """Return the variance that the places leave in the difference of two means of ln speed.

    Args:
        one: The place of every launch behind the first mean.
        other: Likewise of the second.
        variances: Of ln of each place's factor; 0 for those that are not there.
    """
    mine, theirs = Counter(one), Counter(other)
    parts = (
        (mine[place] / mine.total() - theirs[place] / theirs.total()) ** 2 * variances.get(place, 0.0)
        for place in mine.keys() | theirs.keys()
    )
    return math.fsum(parts)
