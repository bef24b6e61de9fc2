"""Somebody else's text, made safe for a terminal or a page."""

from __future__ import annotations

import math
from typing import Any


def printable(text: str, limit: int | None = None) -> str:
    r"""Return `text` with everything a terminal could obey written as an escape, `\x1b` for one.

    Args:
        text: Anything.
        limit: Characters at most; the rest is cut with an ellipsis.
    """
    safe = "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)
    return safe if limit is None or len(safe) <= limit else safe[: limit - 1] + "…"


def one_line(text: str, limit: int | None = None) -> str:
    """Return `text` as one line, likewise safe; its line ends and other white space are single blanks.

    Args:
        text: Anything.
        limit: Characters at most; the rest is cut with an ellipsis.
    """
    return printable(" ".join(text.split()), limit)


def printable_lines(text: str) -> str:
    """Return `text` likewise safe, with its line ends and tabs as they are."""
    return text if text.isprintable() else "".join(c if c in "\n\t" else printable(c) for c in text)


def printable_json(value: Any) -> Any:
    """Return a JSON value with every text in it made safe, and nothing in it that JSON lacks."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(str(key)): printable_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [printable_json(inner) for inner in value]
    if isinstance(value, int) and not -(2**53) < value < 2**53:
        return str(value)  # beyond what readers of JSON keep exactly
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else printable(str(value))


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
