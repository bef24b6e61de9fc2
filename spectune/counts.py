"""How many of something, in words: the one place that knows singular from plural."""

from __future__ import annotations


def count(amount: int, noun: str) -> str:
    """Return `1 launch`, `2 launches`, `1,024 prompts`, `3 processes`, `0 studies`.

    Args:
        amount: How many.
        noun: One of them; where it is several words, the last is the one that changes.
    """
    return f"{amount:,} {noun if amount == 1 else several(noun)}"


def several(noun: str) -> str:
    """Return the plural of a noun."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("ch", "sh", "s", "x")) else f"{noun}s"
