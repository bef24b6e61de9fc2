"""How much launches of the same configuration differ, beyond what windows within a launch tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from spectune.analysis.estimate import Estimate

DEFAULT_LAUNCH_NOISE = 0.015
"""Relative standard deviation between launches assumed until repeats tell (issue 6 tests verdicts at 1.5 and 3 %)."""
DEFAULT_WEIGHT = 2.0
"""Degrees of freedom the default counts for: two repeats weigh as much as the assumption."""
_NORMAL_95 = 1.96


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
    return min(speed.relative_half_width / _NORMAL_95, 1.0) ** 2


def launch_noise(
    repeats: Iterable[Sequence[Estimate]],
    *,
    fitted: int = 0,
    default: float = DEFAULT_LAUNCH_NOISE,
    weight: float = DEFAULT_WEIGHT,
) -> LaunchNoise:
    """Pool the spread of repeated launches with a stated assumption.

    Squared deviations of ln speed from their group's mean hold the variance between launches and the one within them;
    the second is known from each launch and taken away (one-way random effects, Searle, Casella and McCulloch,
    *Variance Components*, section 3.5). What remains is pooled with the assumption as the mean of a
    scaled-inverse-χ² posterior (Gelman et al., *Bayesian Data Analysis*, section 2.6):
    s² = (ν₀·s₀² + max(0, squares − within)) / (ν₀ + ν). Few repeats therefore neither pretend to certainty nor make
    every interval useless.

    Args:
        repeats: Per configuration, the speed of every launch; groups of one say nothing and are ignored.
        fitted: Parameters besides the groups' means that were fitted to these launches, such as a drift.
        default: s₀, the assumed relative standard deviation.
        weight: ν₀, the degrees of freedom it counts for.
    """
    squares, within, dof, launches = 0.0, 0.0, -fitted, 0
    for speeds in repeats:
        if len(speeds) < 2:
            continue
        logs = [math.log(speed.est) for speed in speeds]
        mean = fmean(logs)
        squares += sum((value - mean) ** 2 for value in logs)
        within += (len(logs) - 1) * fmean(map(within_launch_variance, speeds))
        dof += len(logs) - 1
        launches += len(logs)
    if dof < 1:
        return LaunchNoise(default, weight, f"{default:.1%} between launches, assumed: nothing was launched twice")
    between = max(0.0, squares - within)
    relative_sd = math.sqrt((weight * default**2 + between) / (weight + dof))
    source = (
        f"{relative_sd:.1%} between launches: {math.sqrt(between / dof):.1%} over {launches} repeated launches, "
        f"pooled with an assumed {default:.1%} that counts as {weight:g}"
    )
    return LaunchNoise(relative_sd, weight + dof, source)
