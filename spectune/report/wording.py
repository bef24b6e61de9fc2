"""Figures as people read them."""

from __future__ import annotations

import math
from typing import Any

from spectune.analysis.estimate import Estimate
from spectune.analysis.verdict import TOO_SHORT

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


def estimate(figure: Estimate) -> str:
    """Return the figure of an estimate."""
    return number(figure.est, DIGITS)


def interval(figure: Estimate) -> str:
    """Return the interval of an estimate; empty where it is unknown or has no width."""
    return f"{number(figure.lo, DIGITS)} to {number(figure.hi, DIGITS)}" if has_width(figure) else ""


def close_interval(figure: Estimate | None) -> str:
    """Return the interval of a ratio or an accept length, with two decimals."""
    return f"{figure.lo:.2f} to {figure.hi:.2f}" if figure is not None and has_width(figure) else ""


def has_width(figure: Estimate) -> bool:
    """Whether there is an interval to show."""
    return figure.bounded and figure.lo != figure.hi


def speedup_interval(speedup: Estimate | None) -> str:
    """Return the interval of a speedup, or that it has none because a level was not measured long enough."""
    return TOO_SHORT if speedup is not None and not speedup.bounded else close_interval(speedup)


def times(speedup: Estimate | None) -> str:
    """Return a speedup, such as `1.66 ×`."""
    return NOTHING if speedup is None else f"{speedup.est:.2f} ×"


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
