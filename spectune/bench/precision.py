"""How well a mean or a ratio is known from a few samples; pure Python, cheap enough to ask while measuring."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist, fmean

CONFIDENCE = 0.95  # of every interval, unless stated otherwise
TREND_CONFIDENCE = 0.997  # three standard errors


def t_quantile(probability: float, dof: float) -> float:
    """Quantile of Student's t distribution.

    Exact for one and two degrees of freedom, otherwise G. W. Hill's Algorithm 396 (Communications of the ACM 13,
    1970), whose relative error is below 1e-4 from three degrees of freedom on.

    Args:
        probability: Between 0 and 1, exclusive.
        dof: Degrees of freedom, at least 1; `inf` gives the normal quantile.
    """
    assert 0.0 < probability < 1.0, f"a probability must be within (0, 1), but got {probability}"
    assert dof >= 1.0, f"degrees of freedom must be at least 1, but got {dof}"
    if probability < 0.5:
        return -t_quantile(1.0 - probability, dof)
    if probability == 0.5:
        return 0.0
    if math.isinf(dof):
        return NormalDist().inv_cdf(probability)
    if dof == 1.0:
        return math.tan(math.pi * (probability - 0.5))
    if dof == 2.0:
        return (2.0 * probability - 1.0) / math.sqrt(2.0 * probability * (1.0 - probability))
    return _hill(2.0 * (1.0 - probability), dof)


def critical_value(dof: float, confidence: float = CONFIDENCE) -> float:
    """Return how many standard errors the ends of a t interval lie from its middle.

    Args:
        dof: Degrees of freedom, at least 1; `inf` gives the normal interval.
        confidence: With which the interval holds the true value.
    """
    return t_quantile(0.5 + confidence / 2.0, dof)


def _hill(two_tailed: float, n: float) -> float:
    """Hill's expansion; the single-letter names are those of the published algorithm."""
    a = 1.0 / (n - 0.5)
    b = 48.0 / a**2
    c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36
    d = ((94.5 / (b + c) - 3.0) / b + 1.0) * math.sqrt(a * math.pi / 2.0) * n
    y = (d * two_tailed) ** (2.0 / n)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(0.5 * two_tailed)
        y = x * x
        if n < 5.0:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x
        y = math.expm1(a * y * y)
    else:
        y = ((1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)) * y - 1.0) * (
            n + 1.0
        ) / (n + 2.0) + 1.0 / y
    return math.sqrt(n * y)


def relative_half_width(samples: Sequence[float]) -> float:
    """Half-width of the t interval of the mean, divided by the mean.

    Args:
        samples: Independent samples, for instance the throughput of equally long windows (batch means).

    Returns:
        A fraction (0.015 = 1.5 %); infinite for fewer than two samples or a mean of zero.
    """
    if len(samples) < 2:
        return math.inf
    mean = fmean(samples)
    if mean == 0.0:
        return math.inf
    variance = sum((sample - mean) ** 2 for sample in samples) / (len(samples) - 1)
    return critical_value(len(samples) - 1) * math.sqrt(variance / len(samples)) / abs(mean)


def trend(samples: Sequence[float]) -> float:
    """How much samples in a row change from the first to the last, by the straight line through them.

    Args:
        samples: For instance the throughput of equally long windows, one after the other.

    Returns:
        A fraction of their mean, negative where they fall; 0.0 where chance may have done it, because the interval of
        the slope (ordinary least squares) holds zero, or for fewer than four.
    """
    count, dof = len(samples), len(samples) - 2
    mean = fmean(samples) if samples else 0.0
    if count < 4 or mean == 0.0:
        return 0.0
    places = [index - (count - 1) / 2 for index in range(count)]
    spread = sum(place**2 for place in places)
    slope = sum(place * sample for place, sample in zip(places, samples, strict=True)) / spread
    squares = sum((sample - mean - slope * place) ** 2 for place, sample in zip(places, samples, strict=True))
    error = math.sqrt(squares / dof / spread)
    return slope * (count - 1) / mean if abs(slope) > critical_value(dof, TREND_CONFIDENCE) * error else 0.0


def relative_half_width_of_ratio(strata: Iterable[Sequence[tuple[float, float]]]) -> float:
    """Half-width of the interval of Σ numerator / Σ denominator, divided by the ratio.

    The combined ratio estimator of stratified sampling (Cochran, *Sampling Techniques*, section 6.11): its variance
    comes from the residuals numerator − ratio · denominator *within* each stratum, because the mix of the strata is
    fixed by the workload, not left to chance.

    Args:
        strata: Per stratum (prompt class) the (numerator, denominator) of every request.

    Returns:
        A fraction; infinite when no stratum has two samples, or the ratio is zero or undefined.
    """
    groups = [list(stratum) for stratum in strata if stratum]
    numerator = sum(top for group in groups for top, _ in group)
    denominator = sum(bottom for group in groups for _, bottom in group)
    dof = sum(len(group) - 1 for group in groups)
    if dof < 1 or denominator == 0.0 or numerator == 0.0:
        return math.inf
    ratio = numerator / denominator
    spread = 0.0
    for group in groups:
        residuals = [top - ratio * bottom for top, bottom in group]
        mean = fmean(residuals)
        # A stratum with one sample says nothing of its own spread; it borrows the factor of two samples.
        spread += max(len(group), 2) / max(len(group) - 1, 1) * sum((r - mean) ** 2 for r in residuals)
    return critical_value(dof) * math.sqrt(spread) / abs(numerator)
