"""One configuration's speed against another's, over all their launches.

Method. Both speeds are means of ln speed over their launches. The variance of a mean is that between launches, pooled
over everything that was launched twice (`launch_noise`), plus that within a launch (half-width / 1.96, squared), over
the number of launches. The interval of the ratio is exp(ln ratio ± t·√(sum of both variances)) with the degrees of
freedom of the launch noise: the t interval of a contrast with a pooled variance (Scheffé, *The Analysis of Variance*,
section 3.2). Launches in several places are compared within each: what is not known of a place's speed counts only
where the two were not launched equally often there (`places`). A relaunched baseline is taken as the best one with what
is known of its rivals, and a finalist with what is known of the others (`best_baseline`). Break-even is accept length /
speedup, so that accept length > break-even and speedup > 1 are the same statement.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from scipy.special import stdtr

from spectune.analysis.best_baseline import Known
from spectune.analysis.break_even import break_even_from_speedup
from spectune.analysis.estimate import Estimate
from spectune.analysis.launch_noise import LaunchNoise, long_enough, within_launch_variance
from spectune.analysis.places import apart
from spectune.bench.precision import CONFIDENCE, critical_value

Pays = Literal["pays", "loses", "unclear"]
PAYS: Mapping[Pays, str] = {
    "pays": "speculation pays",
    "loses": "speculation does not pay",
    "unclear": "whether speculation pays is not known",
}
"""Each in words: the same wherever it is said."""


@dataclass(frozen=True, slots=True)
class LaunchSpeed:
    """One launch of one configuration, by one figure.

    Attributes:
        candidate_id: Launches with the same id are repeats of each other.
        speed: The figure compared, more is better, with the interval within the launch.
        speculates: Whether anything is drafted; otherwise this is a baseline.
        accept_length: Mean tokens per verify; 1.0 for a baseline.
        simplicity: Sort key, simpler first.
        place: Where it was made.
        place_variance: Of ln of the factor that brought its speed to the place of reference: the same error in all
            launches of a place.
    """

    candidate_id: str
    speed: Estimate
    speculates: bool = False
    accept_length: float = 1.0
    simplicity: tuple[int, ...] = ()
    place: str = ""
    place_variance: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """One candidate against the best baseline.

    Attributes:
        candidate_id: The candidate.
        level: Where: the load point, or the objectives.
        baseline_id: The best baseline there.
        log_ratio: ln of speed over speed.
        error: Its standard error.
        dof: Degrees of freedom of the error.
        picked_from: Number of figures of which this one may be the luckiest: of candidates, if it was picked for these
            very launches, or of looks at its own as they became more.
        accept_length: Mean over the launches.
        launches: Launches of the candidate and of the baseline.
        simplicity: Sort key, simpler first.
        long_enough: Whether both were measured long enough; otherwise there is no interval worth printing.
        unproven: What such launches cannot show, whatever the interval.
    """

    candidate_id: str
    level: str
    baseline_id: str
    log_ratio: float
    error: float
    dof: float
    picked_from: int
    accept_length: float
    launches: tuple[int, int]
    simplicity: tuple[int, ...]
    long_enough: bool = True
    unproven: frozenset[Pays] = frozenset()

    @property
    def speedup(self) -> Estimate:
        """Speed over that of the baseline, 95 % interval for this pair alone."""
        return self.interval(CONFIDENCE)

    @property
    def judged(self) -> Estimate:
        """The same with an interval that allows for the figures it was picked from (Bonferroni)."""
        return self.interval(1.0 - (1.0 - CONFIDENCE) / self.picked_from)

    @property
    def break_even(self) -> float:
        """Accept length at which it would be as fast as the baseline."""
        return break_even_from_speedup(self.accept_length, self.speedup.est)

    @property
    def detectable_effect(self) -> float:
        """Smallest relative gain these launches could have told from noise (0.05 = 5 %)."""
        return math.expm1(self.log_ratio - math.log(low)) if (low := self.judged.lo) > 0.0 else math.inf

    @property
    def chance(self) -> float:
        """Chance that it is faster, by the distribution its interval is made of: 97.5 % where `speedup.lo` is 1."""
        return float(stdtr(self.dof, self.log_ratio / self.error))

    @property
    def verdict(self) -> Pays:
        """Whether it is shown to be faster than the baseline, to be slower, or neither: by the interval `judged`."""
        return pays(self.judged, self.unproven)

    def interval(self, confidence: float) -> Estimate:
        """The speedup with an interval of this coverage, without ends where it was not measured long enough."""
        if not self.long_enough:
            return Estimate(math.exp(self.log_ratio), -math.inf, math.inf)
        return Estimate.of_log(self.log_ratio, critical_value(self.dof, confidence) * self.error)


def pays(speedup: Estimate, unproven: Collection[Pays] = ()) -> Pays:
    """Whether a speedup's interval lies above 1, below 1, or holds it; what cannot be shown is unclear as well."""
    shown: Pays = "pays" if speedup.lo > 1.0 else "loses" if speedup.hi < 1.0 else "unclear"
    return "unclear" if shown in unproven else shown


def compare(
    level: str,
    group: Sequence[LaunchSpeed],
    baseline: Sequence[LaunchSpeed],
    noise: LaunchNoise,
    *,
    own: Known | None = None,
    best: Known | None = None,
    picked_from: int = 1,
    unproven: Collection[Pays] = (),
) -> Comparison:
    """One candidate's launches against one baseline's.

    Args:
        level: Where both were measured.
        group: The candidate's launches.
        baseline: The baseline's.
        noise: Launch noise.
        own: What is known of the candidate, where some of these launches may have chosen it from others.
        best: What is known of the best baseline, where that may be another one.
        picked_from: Number of candidates of which this one may have been picked for these very launches.
        unproven: What such launches cannot show.
    """
    first, mine, theirs = group[0], own or known(group, noise), best or known(baseline, noise)
    return Comparison(
        candidate_id=first.candidate_id,
        level=level,
        baseline_id=baseline[0].candidate_id,
        log_ratio=mine.mean - theirs.mean,
        error=math.sqrt(mine.variance + theirs.variance + _between_places(group, baseline)),
        dof=noise.dof,
        picked_from=picked_from,
        accept_length=fmean(launch.accept_length for launch in group),
        launches=(len(group), len(baseline)),
        simplicity=first.simplicity,
        long_enough=all(long_enough(_within(launches) / len(launches)) for launches in (group, baseline)),
        unproven=frozenset(unproven),
    )


def _between_places(one: Sequence[LaunchSpeed], other: Sequence[LaunchSpeed]) -> float:
    variances = {launch.place: launch.place_variance for launch in (*one, *other)}
    return apart((launch.place for launch in one), (launch.place for launch in other), variances)


def mean_log(group: Sequence[LaunchSpeed]) -> float:
    """Mean of ln speed over the launches of one configuration."""
    return fmean(math.log(launch.speed.est) for launch in group)


def known(group: Sequence[LaunchSpeed], noise: LaunchNoise) -> Known:
    """What the launches of one configuration say of its ln speed."""
    return Known(mean_log(group), (noise.relative_sd**2 + _within(group)) / len(group))


def mean_speed(group: Sequence[LaunchSpeed], noise: LaunchNoise) -> Estimate:
    """Geometric mean of one configuration's launches, with the 95 % interval that launch noise leaves.

    Without ends where it was not measured long enough, as a comparison would be.
    """
    told = known(group, noise)
    if not long_enough(_within(group) / len(group)):
        return Estimate(math.exp(told.mean), -math.inf, math.inf)
    return Estimate.of_log(told.mean, critical_value(noise.dof) * math.sqrt(told.variance))


def _within(group: Sequence[LaunchSpeed]) -> float:
    return fmean(within_launch_variance(launch.speed) for launch in group)
