"""Figures as people read them. An estimate is `[est, lo, hi]`; an unknown end is null."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from spectune.analysis.verdict import TOO_SHORT

Triple = Sequence[float | None]

NOTHING = "–"
DIGITS = 3  # of an estimate, whose interval says what more of them would be worth


def number(value: float | None, digits: int = 4) -> str:
    """Return a figure with about `digits` significant digits, never in scientific notation."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(decimals, 6)}f}"


def length(value: float | None) -> str:
    """Return an accept length: two decimals, as everyone quotes it."""
    return NOTHING if value is None else f"{value:.2f}"


def estimate(triple: Triple | None) -> str:
    """Return the figure of an estimate."""
    return number(triple[0], DIGITS) if triple else NOTHING


def interval(triple: Triple | None) -> str:
    """Return the interval of an estimate; empty where it is unknown or has no width."""
    if not triple or None in triple[1:] or triple[1] == triple[2]:
        return ""
    return f"{number(triple[1], DIGITS)} to {number(triple[2], DIGITS)}"


def close_interval(triple: Triple | None) -> str:
    """Return the interval of a ratio or an accept length, with two decimals."""
    if not triple or triple[1] is None or triple[2] is None or triple[1] == triple[2]:
        return ""
    return f"{triple[1]:.2f} to {triple[2]:.2f}"


def speedup_interval(triple: Triple | None) -> str:
    """Return the interval of a speedup, or that it has none because a level was not measured long enough."""
    return TOO_SHORT if triple and None in triple[1:] else close_interval(triple)


def times(triple: Triple | None) -> str:
    """Return a speedup, such as `1.66 ×`."""
    return f"{triple[0]:.2f} ×" if triple and triple[0] is not None else NOTHING


def duration(seconds: float) -> str:
    """Return a time such as `42 s`, `3 min 20 s` or `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def plain(value: Any) -> str:
    """Return any JSON value as words."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ", ".join(f"{name} {plain(entry)}" for name, entry in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(plain(entry) for entry in value) or "none"
    return str(value)


def percent(change: float) -> str:
    """Return a relative change with its sign, such as `+1.2 %`."""
    return f"{100.0 * change:+z.1f} %".replace("-", "−")
