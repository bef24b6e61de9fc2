"""What the machine does to all launches alike: a slow drift, and jumps from one state to another.

Both are seen in launches of the same configuration. Every repeated configuration has its own mean; what its launches
have in common beyond that is fitted by least squares to ln speed: a line over the study clock, or a step.

One launch that is unlike the others, late or early, draws a line through all of them. So a drift is what is left when
any one launch is left out (the jackknife's leave-one-out fits, Efron 1982): of these lines and the one through all, the
one that says least counts. And it is taken out only as far as it stands out of its own error: its slope b is shrunk to
b (1 − (error / b)²), which is all of a drift that is plain and little of one that is hardly seen (the positive-part
estimate of James and Stein 1961, with the drift's own square for the spread of drifts).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from spectune.analysis.estimate import Estimate
from spectune.analysis.launch_noise import pooled
from spectune.bench.precision import critical_value

FEWEST_FOR_DRIFT = 4
"""Launches of repeated configurations below which a line through them says nothing."""
SMALLEST_JUMP = 0.03
"""Changes below 3 % are left to the launch noise; alternating launches take them out of every comparison anyway."""
TELLS_NOTHING = math.log(2.0)
"""Change of ln speed per hour, twofold, which an interval must exclude for it to say that no drift is seen."""
SUSPECTED = 3.0
"""Standard errors from which a single launch is unlike the others, and made again."""
CERTAIN = 0.997
"""Confidence of the interval that must exclude zero for a step to be a jump. The step is the best of many places, so
that one study in fifty to a hundred sees one where there is none."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A launch of a configuration that has others.

    Attributes:
        trial: Its number.
        candidate_id: Launches with the same id are repeats of each other.
        hours: Study clock at its middle.
        log_speed: ln of the speed compared.
    """

    trial: int
    candidate_id: str
    hours: float
    log_speed: float


@dataclass(frozen=True, slots=True)
class Drift:
    """Change of all speeds over the study clock.

    Attributes:
        per_hour: Change of ln speed per hour as it is taken out, inside the 95 % interval of the line.
        hours: Time the launches behind it span.
    """

    per_hour: Estimate
    hours: float

    @property
    def shown(self) -> bool:
        """Whether it is more than the noise between launches makes anyway; only then is it corrected."""
        return self.per_hour.lo > 0.0 or self.per_hour.hi < 0.0

    def factor(self, hours: float) -> float:
        """What brings a speed forward by so many hours."""
        return math.exp(self.per_hour.est * hours)

    def doubt(self, hours: float) -> float:
        """Half-width of the 95 % interval of ln of that factor."""
        return (self.per_hour.hi - self.per_hour.lo) / 2.0 * abs(hours)

    @property
    def words(self) -> str:
        """The drift in a sentence."""
        rate, lo, hi = (
            f"{math.expm1(value):+z.1%}" for value in (self.per_hour.est, self.per_hour.lo, self.per_hour.hi)
        )
        if self.shown:
            return f"the machine drifted by {rate} an hour ({lo} to {hi}); all figures are brought to the same time"
        if max(abs(self.per_hour.lo), abs(self.per_hour.hi)) > TELLS_NOTHING:
            return f"whether the machine drifts cannot be told from {self.hours:.2g} h, so nothing is corrected"
        return f"no drift is seen: {rate} an hour ({lo} to {hi}) over {self.hours:.2g} h, so nothing is corrected"


@dataclass(frozen=True, slots=True)
class Jump:
    """A lasting change of the machine between two launches.

    Attributes:
        before: Trial of the last launch known to be before it.
        after: Trial of the first launch known to be after it.
        change: Change of ln speed, 95 % interval.
    """

    before: int
    after: int
    change: Estimate

    @property
    def words(self) -> str:
        """The jump in a sentence."""
        change, lo, hi = (math.expm1(value) for value in (self.change.est, self.change.lo, self.change.hi))
        return (
            f"the machine changed between launches {self.before} and {self.after}: {change:+z.1%} ({lo:+z.1%} to "
            f"{hi:+z.1%}); only launches from {self.after} on are compared"
        )


@dataclass(frozen=True, slots=True)
class _Fit:
    """One regressor fitted beside a mean per configuration (analysis of covariance)."""

    slope: float
    error: float
    squares: float
    dof: float


def find_drift(repeats: Sequence[Repeat]) -> Drift | None:
    """Fit a line over the study clock that hangs on no single launch; None where there are too few repeats."""
    if len(repeats) < FEWEST_FOR_DRIFT:
        return None
    lines = [_line(repeats), *(_line([*repeats[:n], *repeats[n + 1 :]]) for n in range(len(repeats)))]
    fits = [fit for fit in lines if fit is not None]
    if len(fits) < len(lines):
        return None
    least = min(fits, key=lambda fit: abs(fit.slope) / fit.error)
    told, times = _interval(least), [repeat.hours for repeat in repeats]
    plain = max(0.0, 1.0 - (least.error / least.slope) ** 2) if least.slope else 0.0
    return Drift(Estimate(least.slope * plain, told.lo, told.hi), max(times) - min(times))


def find_jump(repeats: Sequence[Repeat]) -> Jump | None:
    """Find the step that explains the launches best, if it is certain; at least two launches must lie behind it.

    A step through every gap between two launches is fitted (a change point by least squares, Hinkley 1970) and the
    best taken. It is a jump when its 99.7 % interval excludes zero, it is 3 % at least, and no line explains the
    launches better. A launch is known to lie behind it where its configuration was launched before it, too: the first
    of a configuration, in a gap between two such launches, fits either side.

    Args:
        repeats: In the order of their launches.
    """
    best: tuple[int, _Fit] | None = None
    for first in range(1, len(repeats)):
        fit = _step(repeats, first)
        if len(_behind(repeats, first)) >= 2 and fit is not None and (best is None or fit.squares < best[1].squares):
            best = first, fit
    if best is None:
        return None
    first, fit = best
    line = _line(repeats) if len(repeats) >= FEWEST_FOR_DRIFT else None
    if abs(fit.slope) < max(critical_value(fit.dof, CERTAIN) * fit.error, SMALLEST_JUMP):
        return None
    if line is not None and line.squares < fit.squares:
        return None
    return Jump(repeats[first - 1].trial, _behind(repeats, first)[0].trial, _interval(fit))


def _behind(repeats: Sequence[Repeat], first: int) -> list[Repeat]:
    """Return the launches from one on whose configuration was launched before it."""
    before = {repeat.candidate_id for repeat in repeats[:first]}
    return [repeat for repeat in repeats[first:] if repeat.candidate_id in before]


def surprises(last: Repeat, earlier: Iterable[Repeat], relative_sd: float) -> bool:
    """Whether a launch is so unlike the earlier ones of its configuration that the machine may have jumped."""
    known = [repeat.log_speed for repeat in earlier if repeat.candidate_id == last.candidate_id]
    if not known:
        return False
    error = relative_sd * math.sqrt(1.0 + 1.0 / len(known))
    return abs(last.log_speed - fmean(known)) > max(SUSPECTED * error, SMALLEST_JUMP)


def _step(repeats: Sequence[Repeat], first: int) -> _Fit | None:
    after = repeats[first].trial
    return _fitted(repeats, lambda repeat: float(repeat.trial >= after))


def _line(repeats: Sequence[Repeat]) -> _Fit | None:
    return _fitted(repeats, lambda repeat: repeat.hours)


def _fitted(repeats: Sequence[Repeat], regressor: Callable[[Repeat], float]) -> _Fit | None:
    groups: dict[str, list[Repeat]] = {}
    for repeat in repeats:
        groups.setdefault(repeat.candidate_id, []).append(repeat)
    pairs: list[tuple[float, float]] = []
    for group in groups.values():
        x_mean, y_mean = fmean(map(regressor, group)), fmean(repeat.log_speed for repeat in group)
        pairs += [(regressor(repeat) - x_mean, repeat.log_speed - y_mean) for repeat in group]
    spread = math.fsum(x * x for x, _ in pairs)
    dof = len(repeats) - len(groups) - 1
    if spread <= 0.0 or dof < 1:
        return None
    slope = math.fsum(x * y for x, y in pairs) / spread
    squares = math.fsum((y - slope * x) ** 2 for x, y in pairs)
    variance, known = pooled(squares, dof)
    return _Fit(slope, math.sqrt(variance / spread), squares, known)


def _interval(fit: _Fit) -> Estimate:
    return Estimate.symmetric(fit.slope, critical_value(fit.dof) * fit.error)
