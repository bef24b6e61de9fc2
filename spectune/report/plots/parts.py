"""Parts that several charts share."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectune.report.plots.marks import Segment, Tone
from spectune.report.plots.scale import Scale
from spectune.report.wording import Triple, estimate, interval, length, times


def path(points: Sequence[tuple[float, float]], tone: Tone, style: str = "solid") -> Iterable[Segment]:
    """Return the lines that join points, given as places."""
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        yield Segment(x1, y1, x2, y2, tone, style)


def span(x: Scale, triple: Triple, at: float, tone: Tone) -> tuple[Segment, ...]:
    """Return the interval of a figure on the horizontal axis, `at` percent from the top; unknown ends have none."""
    _, low, high = triple
    if low is None or high is None or low == high:
        return ()
    return (Segment(x.across(low), at, x.across(high), at, tone, "thin"),)


def rise(y: Scale, triple: Triple, at: float, tone: Tone) -> tuple[Segment, ...]:
    """Return the interval of a figure on the vertical axis, `at` percent from the left; unknown ends have none."""
    _, low, high = triple
    if low is None or high is None or low == high:
        return ()
    return (Segment(at, y.up(low), at, y.up(high), tone, "thin"),)


def cross(x: Scale, across: Triple, y: Scale, up: Triple, tone: Tone) -> tuple[Segment, ...]:
    """Return the intervals of a point in both directions."""
    assert across[0] is not None
    assert up[0] is not None
    return span(x, across, y.up(up[0]), tone) + rise(y, up, x.across(across[0]), tone)


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


def tip_of(row: Mapping[str, Any]) -> str:
    """Return what a candidate's point says when it is pointed at: a row of the summary, a figure a line."""
    lines = [f"{row['label']} at {row['level']}"]
    for name, unit in (("decode_speed", "tok/s"), ("output_throughput", "tok/s"), ("cycle_ms", "ms")):
        if row.get(name):
            spread = interval(row[name])
            words = f"{name.removesuffix('_ms').replace('_', ' ')} {estimate(row[name])} {unit}"
            lines.append(f"{words} ({spread})" if spread else words)
    if row.get("break_even"):
        lines.append(f"accept length {length(row['accept_length'][0])}, break-even {length(row['break_even'][0])}")
        lines.append(f"{times(row.get('speedup'))} the best baseline")
    return "\n".join(lines)
