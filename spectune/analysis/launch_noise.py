"""How much launches of the same configuration differ, beyond what windows within a launch tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from spectune.analysis.estimate import NORMAL_95, Estimate

ASSUMED_SD = 0.02
"""Relative standard deviation between launches assumed until repeats tell; seen are mostly 1 to 3 %."""
ENOUGH_DOF = 3.0
"""Degrees of freedom that the assumption fills up to. From here on repeats speak alone: an assumption that goes on
counting makes every interval of a machine that is noisier than assumed too narrow."""
LEAST_SD = 0.002
"""No engine is launched twice with less difference; a few launches that happen to agree do not show it."""
MOST_HALF_WIDTH = 0.5
"""A figure that its own launch knows no better than to ±50 % was not measured long enough to be compared."""


@dataclass(frozen=True, slots=True)
class LaunchNoise:
    """Relative standard deviation of a speed from launch to launch, what is seen within one launch left out.

    Attributes:
        relative_sd: 0.015 = 1.5 %.
        dof: Degrees of freedom behind it, for the t quantile.
        source: Where it comes from, in words.
    """

    relative_sd: float
    dof: float
    source: str


def within_launch_variance(speed: Estimate) -> float:
    """Variance of ln speed that one launch shows of itself: (half-width / 1.96)², at most 1 where nothing is known."""
    return min(speed.relative_half_width / NORMAL_95, 1.0) ** 2


def long_enough(within: float) -> bool:
    """Whether a speed with this variance of ln within its launches was measured long enough to be compared."""
    return math.sqrt(within) * NORMAL_95 <= MOST_HALF_WIDTH


def launch_noise(
    repeats: Iterable[Sequence[Estimate]],
    *,
    fitted: int = 0,
) -> LaunchNoise:
    """Pool the spread of repeated launches; where they are few, with a stated assumption.

    Squared deviations of ln speed from their group's mean hold the variance between launches and the one within them;
    the second is known from each launch and taken away (one-way random effects, Searle, Casella and McCulloch,
    *Variance Components*, section 3.5).

    Args:
        repeats: Per configuration, the speed of every launch; groups of one say nothing and are ignored, and so are
            launches that were not measured long enough: taking away what they leave open would leave nothing.
        fitted: Parameters besides the groups' means that were fitted to these launches, such as a drift.
    """
    squares, within, dof, launches = 0.0, 0.0, -fitted, 0
    for repeated in repeats:
        speeds = [speed for speed in repeated if long_enough(within_launch_variance(speed))]
        if len(speeds) < 2:
            continue
        logs = [math.log(speed.est) for speed in speeds]
        mean = fmean(logs)
        squares += sum((value - mean) ** 2 for value in logs)
        within += (len(logs) - 1) * fmean(map(within_launch_variance, speeds))
        dof += len(logs) - 1
        launches += len(logs)
    if dof < 1:
        source = f"{ASSUMED_SD:.1%} between launches, assumed: nothing was launched twice"
        return LaunchNoise(ASSUMED_SD, ENOUGH_DOF, source)
    between = max(0.0, squares - within)
    variance, known = pooled(between, dof)
    source = f"{math.sqrt(variance):.1%} between launches, over {launches} repeated launches"
    if known > dof:
        alone = math.sqrt(between / dof)
        source += f" that alone show {alone:.1%}, pooled with an assumed {ASSUMED_SD:.1%} because they are few"
    return LaunchNoise(math.sqrt(variance), known, source)


def pooled(squares: float, dof: float) -> tuple[float, float]:
    """Variance between launches from squared deviations, and its degrees of freedom.

    Below `ENOUGH_DOF` the assumption makes up for those that are missing, as the mean of a scaled-inverse-χ² posterior
    (Gelman et al., *Bayesian Data Analysis*, section 2.6): s² = (ν₀·s₀² + squares) / (ν₀ + ν).
    """
    assumed = max(0.0, ENOUGH_DOF - dof)
    variance = (assumed * ASSUMED_SD**2 + squares) / (assumed + dof)
    return max(variance, LEAST_SD**2), assumed + dof
