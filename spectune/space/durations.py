"""Durations as people write them: `90s`, `20m`, `1h30m`."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile(rf"(?:{_NUMBER}h)?\s*(?:{_NUMBER}m)?\s*(?:{_NUMBER}s)?", re.ASCII)


def parse_duration(raw: object) -> float:
    """Return the seconds of a duration such as `20m`, `90s`, `1.5h` or `1h30m`.

    Raises:
        ValueError: No unit, another unit, not a string, or not more than zero.
    """
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        raise ValueError(f"a duration needs a unit, but got {raw}; write {raw}s, {raw}m or {raw}h")  # noqa: TRY004  # pydantic
    match = _DURATION.fullmatch(raw.strip()) if isinstance(raw, str) and raw.strip() else None
    if match is None:
        raise ValueError(f"a duration must look like 90s, 20m, 1h or 1h30m, but got {raw!r}")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in zip(match.groups(), "hms", strict=True) if number)
    if not 0 < seconds < math.inf:
        raise ValueError(f"a duration must be longer than zero and finite, but got {raw!r}")
    return seconds


def format_duration(seconds: float) -> str:
    """Return the shortest text that `parse_duration` reads back as `seconds`.

    Args:
        seconds: More than zero.
    """
    if not seconds.is_integer():
        return f"{seconds:.9f}".rstrip("0") + "s"
    hours, rest = divmod(int(seconds), 3600)
    minutes, last = divmod(rest, 60)
    return "".join(f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (last, "s")) if number)


Duration = Annotated[float, BeforeValidator(parse_duration), PlainSerializer(format_duration)]
"""Seconds; written in a file with a unit."""
