"""Parts that several charts share."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from spectune.analysis.estimate import Estimate
from spectune.report.plots.marks import Segment, Tone
from spectune.report.plots.scale import Scale
from spectune.report.wording import estimate, has_width, interval, length, times
from spectune.search.answer.summary_fields import CandidateLevel


def path(points: Sequence[tuple[float, float]], tone: Tone, style: str = "solid") -> Iterable[Segment]:
    """Return the lines that join points, given as places."""
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        yield Segment(x1, y1, x2, y2, tone, style)


def extents(figures: Iterable[Estimate]) -> Iterator[float]:
    """Yield what a scale has to hold: figures with the ends of their intervals."""
    for figure in figures:
        yield from (figure.est, figure.lo, figure.hi)


def span(x: Scale, figure: Estimate, at: float, tone: Tone) -> tuple[Segment, ...]:
    """Return the interval of a figure on the horizontal axis, `at` percent from the top; unknown ends have none."""
    if not has_width(figure):
        return ()
    return (Segment(x.across(figure.lo), at, x.across(figure.hi), at, tone, "thin"),)


def rise(y: Scale, figure: Estimate, at: float, tone: Tone) -> tuple[Segment, ...]:
    """Return the interval of a figure on the vertical axis, `at` percent from the left; unknown ends have none."""
    if not has_width(figure):
        return ()
    return (Segment(at, y.up(figure.lo), at, y.up(figure.hi), tone, "thin"),)


def cross(x: Scale, across: Estimate, y: Scale, up: Estimate, tone: Tone) -> tuple[Segment, ...]:
    """Return the intervals of a point in both directions."""
    return span(x, across, y.up(up.est), tone) + rise(y, up, x.across(across.est), tone)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a chart that has one line for each thing it shows, the first on top."""

    number: int

    @property
    def height(self) -> int:
        """Of the plot's area, pixels."""
        return 46 * self.number

    def at(self, index: int) -> float:
        """Return where the marks of a row stand, percent from the top; its name stands above them."""
        return round(100.0 * (index + 0.7) / self.number, 2)


def tip_of(row: CandidateLevel) -> str:
    """Return what a candidate's point says when it is pointed at: a figure a line."""
    lines, figures = [f"{row.label} at {row.level}"], row.figures
    for name, figure, unit in (
        ("decode speed", figures.decode_speed, "tok/s"),
        ("output throughput", figures.output_throughput, "tok/s"),
        ("cycle", figures.cycle_ms, "ms"),
    ):
        spread = interval(figure)
        words = f"{name} {estimate(figure)} {unit}"
        lines.append(f"{words} ({spread})" if spread else words)
    if (needed := figures.break_even) is not None:
        lines.append(f"accept length {length(figures.accept_length.est)}, break-even {length(needed.est)}")
        lines.append(f"{times(figures.speedup)} the best baseline")
    return "\n".join(lines)
