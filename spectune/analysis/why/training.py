"""How many training samples a drafter needs to break even, and what generating them costs.

Accept length against samples n is taken as a saturating curve, τ(n) = 1 + M·nᵞ/(nᵞ + hᵞ): nothing at first, half of
its limit M at h samples, then less and less for each further sample. It is fitted by weighing a grid of (M, h, γ) with
the likelihood of the points (a Bayesian fit, Gelman et al., *Bayesian Data Analysis*, section 3.7), because a few
points leave the limit open: intervals are quantiles of the weighted grid, and that the limit may be too low is a
probability, not an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spectune.analysis.estimate import Estimate, Floats
from spectune.jsonable import Jsonable

POINT_ERROR = 0.05
"""Relative standard deviation of a point: drafters are trained and measured in other ways than this one will be."""
LONGEST = 8.0
"""Highest accept length a curve may tend to, where neither the settings nor the points reach further."""
HEADROOM = 1.5
"""How far beyond the longest point a curve may tend."""
FEW_POINTS = 5
"""With fewer than this for the curve's three unknowns, the interval is mostly assumption."""
QUANTILES = (0.5, 0.025, 0.975)
REACH = (100.0, 1000.0)
"""Half of the limit is reached between the fewest samples / 100 and the most × 1000."""
STEPS = (40, 60, 16)
CURVE_POINTS = 25


@dataclass(frozen=True, slots=True)
class DrafterPoint(Jsonable):
    """Accept length that a drafter trained on so many samples reached."""

    samples: int
    accept_length: float


@dataclass(frozen=True, slots=True)
class Cost(Jsonable):
    """What generating training samples takes.

    Attributes:
        tokens_per_sample: Tokens the target generates for one.
        throughput_tok_s: Best throughput of all requests together that the study measured.
        where: The candidate and level that gave it.
        hours: Of that engine, for the samples that break even.
    """

    tokens_per_sample: int
    throughput_tok_s: float
    where: str
    hours: Estimate


@dataclass(frozen=True, slots=True)
class Training(Jsonable):
    """What more training would do.

    Attributes:
        points: What was given, fewest samples first.
        accept_length: Wanted: the break-even.
        curve: (samples, accept length) over the points and as far again.
        samples: Training samples that reach it; the upper end is unbounded where the limit may be too low; None where
            it probably is.
        probability: That any number of samples reaches it.
        cost: What generating them takes; None where nothing is known to be reached.
        warnings: Why not to believe it too much.
        words: All of it, as sentences.
    """

    points: tuple[DrafterPoint, ...]
    accept_length: float
    curve: tuple[tuple[int, Estimate], ...]
    samples: Estimate | None
    probability: float
    cost: Cost | None
    warnings: tuple[str, ...]
    words: tuple[str, ...]


def training(
    points: Sequence[DrafterPoint],
    accept_length: float,
    *,
    bound: int | None,
    tokens_per_sample: int,
    throughput_tok_s: float,
    where: str,
) -> Training:
    """Fit the curve, and read off what a wanted accept length takes.

    Args:
        points: At least two, of different numbers of samples.
        accept_length: Wanted, above 1.
        bound: Highest accept length the settings can reach, if known.
        tokens_per_sample: Tokens the target generates for one sample.
        throughput_tok_s: At which it generates them.
        where: What has this throughput, for the words.
    """
    ordered = tuple(sorted(points, key=lambda point: point.samples))
    longest = max(point.accept_length for point in ordered)
    limits, halves, slopes = _grid(ordered, max(LONGEST, bound or 0.0, HEADROOM * longest))
    weights = _weights(ordered, limits, halves, slopes)
    wanted = accept_length - 1.0
    reaches = limits > wanted
    probability = float(weights[reaches].sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        takes = np.where(reaches, halves * (wanted / np.where(reaches, limits - wanted, 1.0)) ** (1.0 / slopes), np.inf)
    middle, low, high = _quantiles(np.maximum(takes, 1.0), weights)  # there is no fraction of a sample
    samples = Estimate.around(middle, low, high) if math.isfinite(middle) else None
    cost = None
    if samples is not None:
        hours = samples.scaled(tokens_per_sample / throughput_tok_s / 3600.0)
        cost = Cost(tokens_per_sample, throughput_tok_s, where, hours)
    warnings = tuple(_warnings(ordered, bound))
    return Training(
        points=ordered,
        accept_length=accept_length,
        curve=tuple(_curve(ordered, limits, halves, slopes, weights)),
        samples=samples,
        probability=probability,
        cost=cost,
        warnings=warnings,
        words=(*_words(accept_length, samples, probability, cost), *warnings),
    )


def _grid(points: Sequence[DrafterPoint], longest: float) -> tuple[Floats, Floats, Floats]:
    """Return M, h and γ of every curve considered, flat: equally likely before any point is seen."""
    most, half, slope = STEPS
    fewest, largest = points[0].samples / REACH[0], points[-1].samples * REACH[1]
    grid = np.meshgrid(
        np.linspace(0.05, longest - 1.0, most), np.geomspace(fewest, largest, half), np.linspace(0.15, 1.5, slope),
        indexing="ij",
    )  # fmt: skip
    return grid[0].ravel(), grid[1].ravel(), grid[2].ravel()


def _at(samples: float, limits: Floats, halves: Floats, slopes: Floats) -> Floats:
    found: Floats = 1.0 + limits / (1.0 + (halves / samples) ** slopes)
    return found


def _weights(points: Sequence[DrafterPoint], limits: Floats, halves: Floats, slopes: Floats) -> Floats:
    misses = np.zeros_like(limits)
    for point in points:
        expected = _at(point.samples, limits, halves, slopes)
        misses += ((expected - point.accept_length) / (POINT_ERROR * point.accept_length)) ** 2
    weights: Floats = np.exp(-0.5 * (misses - misses.min()))
    found: Floats = weights / weights.sum()
    return found


def _quantiles(values: Floats, weights: Floats) -> tuple[float, float, float]:
    """Return median and ends of the interval of weighted values, which may be infinite."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    at = np.minimum(np.searchsorted(reached, QUANTILES), len(order) - 1)
    middle, low, high = (float(value) for value in values[order][at])
    return middle, low, high


def _curve(
    points: Sequence[DrafterPoint], limits: Floats, halves: Floats, slopes: Floats, weights: Floats
) -> Iterator[tuple[int, Estimate]]:
    for samples in np.geomspace(points[0].samples, points[-1].samples * 10.0, CURVE_POINTS).tolist():
        middle, low, high = _quantiles(_at(samples, limits, halves, slopes), weights)
        yield round(samples), Estimate.around(middle, low, high)


def _warnings(points: Sequence[DrafterPoint], bound: int | None) -> Iterator[str]:
    if len(points) < FEW_POINTS:
        yield (
            f"{len(points)} points for a curve of three unknowns: the interval is mostly assumption; train on a few "
            "sizes in between before you pay for the last one"
        )
    if any(later.accept_length < sooner.accept_length for sooner, later in pairwise(points)):
        yield "a drafter with more samples accepts less than one with fewer: they differ in more than samples"
    longest = max(point.accept_length for point in points)
    if bound is not None and longest > bound:
        yield (
            f"{longest:g} is more than the {bound} these settings can accept: the points were measured with more "
            "steps; name a candidate with as many (--candidate)"
        )


def _words(accept_length: float, samples: Estimate | None, probability: float, cost: Cost | None) -> Iterator[str]:
    sure = (
        f"the curve reaches it with a probability of {'more than 99 %' if probability > 0.99 else f'{probability:.0%}'}"
    )
    if samples is None or cost is None:
        yield f"accept length {accept_length:.2f} is more likely than not beyond what more samples reach; {sure}"
        return
    yield f"accept length {accept_length:.2f} takes {_range(samples)} training samples; {sure}"
    yield (
        f"at {cost.tokens_per_sample} tokens each, generating them takes {_range(cost.hours)} hours of this engine at "
        f"{cost.throughput_tok_s:.0f} tok/s, its best here ({cost.where})"
    )


def _range(figure: Estimate) -> str:
    most = "no limit" if math.isinf(figure.hi) else _count(figure.hi)
    return f"{_count(figure.est)} ({_count(figure.lo)} to {most})"


def _count(amount: float) -> str:
    """Return two significant digits; of hours below ten, what two digits are."""
    rough = float(f"{amount:.2g}")
    return f"{rough:,.0f}" if rough >= 10.0 else f"{rough:g}"
