"""A figure with its interval, and the arithmetic that keeps the interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectune.bench.precision import CONFIDENCE, critical_value

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_FAR = 700.0  # the exponential of more overflows
_RESAMPLES = 400  # of a bootstrap
NORMAL_95 = 1.96  # half-width of a 95 % interval, in standard errors


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and the interval that holds its true value with 95 % confidence, unless stated otherwise.

    Attributes:
        est: The figure itself.
        lo: Lower end of the interval; −inf when nothing is known of it.
        hi: Upper end of the interval; +inf when nothing is known of it.
    """

    est: float
    lo: float
    hi: float

    def __post_init__(self) -> None:
        assert self.lo <= self.est <= self.hi, f"an interval must hold its estimate, but got {self}"

    @classmethod
    def exactly(cls, value: float) -> Estimate:
        """A figure known without error, as the accept length 1.0 without speculation."""
        return cls(value, value, value)

    @classmethod
    def around(cls, value: float, lo: float, hi: float) -> Estimate:
        """A figure and percentiles of it; a percentile on the wrong side of the figure becomes the figure."""
        return cls(value, min(lo, value), max(hi, value))

    @classmethod
    def symmetric(cls, value: float, half_width: float) -> Estimate:
        """A figure with an interval that is as wide on both sides."""
        return cls(value, value - half_width, value + half_width)

    @classmethod
    def of_log(cls, log: float, half_width: float) -> Estimate:
        """A positive figure by its natural logarithm, and the half-width of the interval of that."""
        return cls(math.exp(log), math.exp(log - half_width), math.exp(log + half_width))

    @property
    def bounded(self) -> bool:
        """Whether both ends of the interval are known."""
        return math.isfinite(self.lo) and math.isfinite(self.hi)

    @property
    def relative_half_width(self) -> float:
        """Half the interval divided by the figure (0.015 = ±1.5 %); infinite for a figure of zero."""
        if self.lo == self.hi:
            return 0.0
        return (self.hi - self.lo) / 2.0 / abs(self.est) if self.est else math.inf

    def scaled(self, factor: float) -> Estimate:
        """The figure in another unit; the factor is positive."""
        assert factor > 0.0
        return Estimate(self.est * factor, self.lo * factor, self.hi * factor)

    def at_least(self, least: float) -> Estimate:
        """The figure where nothing below `least`, which it is not, can be; an end that is unknown stays so."""
        return self if math.isinf(self.lo) else Estimate(self.est, max(self.lo, least), self.hi)

    def blurred(self, half_width: float) -> Estimate:
        """The positive figure with one more error: ln of it has this 95 % half-width, added in quadrature."""
        if half_width == 0.0:
            return self
        down, up = _log_distance(self.est, self.lo), _log_distance(self.hi, self.est)
        lo, hi = math.exp(-math.hypot(down, half_width)), math.exp(min(math.hypot(up, half_width), _FAR))
        return Estimate(self.est, self.est * lo, self.est * hi)

    @property
    def words(self) -> str:
        """The figure and its interval, as people read them."""
        if not self.bounded:
            return f"{self.est:.2f} (not known how exactly)"
        return self.cell(2)

    def cell(self, digits: int) -> str:
        """The same with so many decimals, for a column of a table."""
        if not self.bounded:
            return f"{self.est:.{digits}f} (unknown)"
        return f"{self.est:.{digits}f} ({self.lo:.{digits}f}–{self.hi:.{digits}f})"

    def to_json(self) -> list[float | None]:
        """`[est, lo, hi]`, an unknown end as null."""
        return [self.est, *(end if math.isfinite(end) else None for end in (self.lo, self.hi))]

    @classmethod
    def from_json(cls, data: Sequence[float | None]) -> Estimate:
        """Read what `to_json` wrote.

        Raises:
            ValueError: If it is not three numbers in that order, the first of them known.
        """
        est, lo, hi = data if len(data) == 3 else (None, None, None)
        if est is None or any(isinstance(end, bool) or not isinstance(end, int | float | None) for end in data):
            raise ValueError(f"an estimate must be [est, lo, hi], but got {data!r}")
        return cls(est, -math.inf if lo is None else lo, math.inf if hi is None else hi)


def ratio(top: Estimate, bottom: Estimate) -> Estimate:
    """Quotient of two independent positive figures.

    The intervals are read on the log scale and their half-widths added in quadrature (MOVER, Donner and Zou 2012):
    ln lo = ln r − √(ln²(top/top.lo) + ln²(bottom.hi/bottom)), and the mirror image for hi.
    """
    assert top.est > 0.0, "a ratio of speeds needs positive figures"
    assert bottom.est > 0.0, "a ratio of speeds needs positive figures"
    value = top.est / bottom.est
    down = math.hypot(_log_distance(top.est, top.lo), _log_distance(bottom.hi, bottom.est))
    up = math.hypot(_log_distance(top.hi, top.est), _log_distance(bottom.est, bottom.lo))
    return Estimate(value, value * math.exp(-down), value * math.exp(up))


def _log_distance(above: float, below: float) -> float:
    """Natural log of above/below, infinite where an end of an interval is unknown or not positive."""
    if below <= 0.0 or math.isinf(above):
        return math.inf
    return math.log(above / below)


def batch_means(samples: Sequence[float]) -> Estimate:
    """Mean of equally long windows with its t interval (the method of batch means, Law and Kelton, section 9.5.3).

    Args:
        samples: One figure per window, at least one.

    Returns:
        The mean; its interval is unbounded when there is one window only.
    """
    assert samples, "a mean of no window does not exist"
    mean = math.fsum(samples) / len(samples)
    if len(samples) < 2:
        return Estimate(mean, -math.inf, math.inf)
    deviation = math.sqrt(math.fsum((sample - mean) ** 2 for sample in samples) / (len(samples) - 1))
    return Estimate.symmetric(mean, critical_value(len(samples) - 1) * deviation / math.sqrt(len(samples)))


def bootstrap(totals: Callable[[Floats], Floats], rows: Floats, strata: Sequence[str], *, seed: int) -> Estimate:
    """Percentile bootstrap over requests, within strata because the workload fixes the mix of classes.

    A stratum with one request shows no spread of its own and is joined with the smallest other one (collapsed strata,
    Cochran, *Sampling Techniques*, section 5A.12): what the strata differ by then counts as spread, so that the
    interval is rather too wide than unknown.

    Drawing n out of n understates the variance of a stratum by (n−1)/n; every deviation from the estimate is widened
    by √(n/(n−strata)) for it (Efron and Tibshirani, *An Introduction to the Bootstrap*, section 5.3), and by Student's
    quantile over the normal one, because percentiles of few requests are too narrow (Hesterberg, *The American
    Statistician* 69, 2015).

    Args:
        totals: Maps column sums, shape (…, columns), to the figure, shape (…).
        rows: What each request contributes, shape (requests, columns).
        strata: The class of each request.
        seed: Makes the result repeatable.

    Returns:
        The figure of all rows; its interval is unbounded when there is one request only.
    """
    assert len(rows) == len(strata) > 0, "a bootstrap needs at least one request, and a class for each"
    value = float(totals(rows.sum(axis=0)))
    groups = _collapsed([np.flatnonzero(np.asarray(strata) == name) for name in sorted(set(strata))])
    spare = len(rows) - len(groups)
    if spare == 0:
        return Estimate(value, -math.inf, math.inf)
    rng = np.random.default_rng(seed)
    sums = np.zeros((_RESAMPLES, rows.shape[1]))
    for group in groups:
        sums += rows[group][rng.integers(len(group), size=(_RESAMPLES, len(group)))].sum(axis=1)
    tail = (1.0 - CONFIDENCE) / 2.0
    few = critical_value(spare) / critical_value(math.inf)
    spread = (totals(sums) - value) * math.sqrt(len(rows) / spare) * few
    lo, hi = np.quantile(spread, [tail, 1.0 - tail])
    return Estimate.around(value, value + float(lo), value + float(hi))


def _collapsed(groups: Sequence[Indices]) -> list[Indices]:
    """Return the groups with those of one row joined, with each other first, then with the smallest of the rest."""
    single, several = [one for one in groups if len(one) == 1], [one for one in groups if len(one) > 1]
    joined = [np.concatenate(single)] if single else []
    if len(single) == 1 and several:
        smallest = min(several, key=len)
        several = [one for one in several if one is not smallest]
        joined = [np.concatenate([smallest, *joined])]
    return several + joined
