"""`--drafter-points 10000:1.9 37000:2.0`: what other drafters reached, as somebody types it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spectune.analysis.why import DrafterPoint
from spectune.errors import InputProblems, Problem

MOST_SAMPLES = 10**12
LONGEST = 1000.0


def parse_points(words: Sequence[str]) -> list[DrafterPoint]:
    """Read SAMPLES:ACCEPT_LENGTH, separated by spaces or commas.

    Raises:
        InputProblems: Everything that is no point, and points that tell no curve.
    """
    parts = [part for word in words for part in re.split(r"[\s,]+", word) if part]
    points, problems = [], []
    for part in parts:
        try:
            points.append(_point(part))
        except ValueError:
            problems.append(
                Problem(
                    f"a drafter point is SAMPLES:ACCEPT_LENGTH, whole samples from 1 and an accept length from 1 to "
                    f"{LONGEST:g}, such as 37000:2.0, but got {part!r}"
                )
            )
    if not problems and len({point.samples for point in points}) < 2:
        problems.append(
            Problem(f"a curve needs drafters of two different numbers of samples, but got {' '.join(parts) or 'none'}")
        )
    if problems:
        raise InputProblems(problems)
    return points


def _point(text: str) -> DrafterPoint:
    samples, length = text.encode("ascii").split(b":")
    point = DrafterPoint(int(samples), float(length))
    if not 1 <= point.samples <= MOST_SAMPLES or not 1.0 <= point.accept_length <= LONGEST:
        raise ValueError(text)
    return point
