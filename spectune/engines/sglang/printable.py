"""Somebody else's text, made safe for a terminal."""

from __future__ import annotations

import unicodedata

# Control characters, invisible formatting (direction marks among it), line separators, halves of a pair, private use.
_UNPRINTABLE = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co"}


def printable(text: str, limit: int | None = None) -> str:
    r"""Return `text` with everything a terminal could obey written as an escape, `\x1b` for one.

    Args:
        text: Anything.
        limit: Characters at most; the rest is cut with an ellipsis.
    """
    safe = "".join(_escaped(letter) if unicodedata.category(letter) in _UNPRINTABLE else letter for letter in text)
    return safe if limit is None or len(safe) <= limit else safe[: limit - 1] + "…"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
