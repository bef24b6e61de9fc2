"""The load beyond which speculation stops paying, interpolated between the levels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from spectune.analysis.estimate import Estimate
from spectune.analysis.why.result import LoadLimit

Point = tuple[str, int, Estimate]
"""Level, requests in flight, speedup there."""


def load_limit(candidate_id: str, label: str, points: Sequence[Point]) -> LoadLimit | None:
    """Find where a candidate's speedup falls through 1; None with fewer than two loads.

    ln speedup is taken as linear in ln concurrency between two levels. The ends of the interval are where the ends of
    the speedups' intervals fall through 1; an end beyond the levels is not known.

    Args:
        candidate_id: The candidate.
        label: What it is called.
        points: Every closed-loop level, in any order.
    """
    ordered = sorted(points, key=lambda point: point[1])
    if len({load for _, load, _ in ordered}) < 2:
        return None
    at = _falls(ordered, lambda speedup: speedup.est)
    if at is None:
        return LoadLimit(candidate_id, label, None, None, tuple(ordered), _never_or_always(ordered))
    low = _falls(ordered, lambda speedup: speedup.lo)
    high = _falls(ordered, lambda speedup: speedup.hi)
    before, after = _around(ordered, at)
    found = Estimate.around(at, -math.inf if low is None else low, math.inf if high is None else high)
    ends = f"{f'{low:.2g}' if low is not None else f'below {ordered[0][1]}'} to " + (
        f"{high:.2g}" if high is not None else f"above {ordered[-1][1]}"
    )
    words = f"speculation stops paying at about {at:.2g} requests in flight ({ends}), between {before} and {after}"
    return LoadLimit(candidate_id, label, found, (before, after), tuple(ordered), words + _from(ordered))


def _falls(points: Sequence[Point], figure: Callable[[Estimate], float]) -> float | None:
    """Return the concurrency at which the figure last falls from 1 or more to less."""
    for (_, load, speedup), (_, next_load, next_speedup) in reversed(list(pairwise(points))):
        first, second = _log(figure(speedup)), _log(figure(next_speedup))
        if first >= 0.0 > second:
            share = 0.0 if math.isinf(second) else 1.0 if math.isinf(first) else first / (first - second)
            return math.exp(math.log(load) + share * (math.log(next_load) - math.log(load)))
    return None


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _around(points: Sequence[Point], at: float) -> tuple[str, str]:
    before = [level for level, load, _ in points if load <= at * (1.0 + 1e-9)]
    after = [level for level, load, _ in points if load > at * (1.0 + 1e-9)]
    return before[-1], after[0]


def _never_or_always(points: Sequence[Point]) -> str:
    first, last = points[0], points[-1]
    if all(speedup.est >= 1.0 for _, _, speedup in points):
        return _everywhere("every load", points, [level for level, _, speedup in points if speedup.lo > 1.0])
    if all(speedup.est < 1.0 for _, _, speedup in points):
        return _everywhere("no load", points, [level for level, _, speedup in points if speedup.hi < 1.0])
    begins = next(level for level, _, speedup in points if speedup.est >= 1.0)
    if all(speedup.hi < 1.0 or speedup.lo > 1.0 for _, _, speedup in points):
        return f"speculation does not pay at {first[0]}, and does from {begins} on up to {last[0]}"
    return f"speculation seems not to pay at {first[0]}, and to pay from {begins} on up to {last[0]}"


def _everywhere(which: str, points: Sequence[Point], shown: Sequence[str]) -> str:
    """Return what holds at all levels, and at which of them it is shown: by the whole interval."""
    told = f"at {which} measured, {points[0][0]} to {points[-1][0]}"
    if len(shown) == len(points):
        return f"speculation pays {told}"
    where = f"{' and '.join(shown)} only" if shown else "none of them"
    return f"speculation seems to pay {told}: shown at {where}"


def _from(points: Sequence[Point]) -> str:
    if points[0][2].est >= 1.0:
        return ""
    begins = next(level for level, _, speedup in points if speedup.est >= 1.0)
    return f"; it does not pay at {points[0][0]} either, only from {begins} on"
