"""Numbers as options take them, in ASCII: what is wrong with one is said with the value and the rule.

An option's default comes here, too, as the number it is.
"""

from __future__ import annotations

from collections.abc import Callable

import typer


def whole(least: int | None = None, most: int | None = None) -> Callable[[str | int], int]:
    """Return what reads a whole number of an option.

    Args:
        least: The smallest that is taken; None where another says which can be.
        most: The largest; None for any.
    """
    bounds = "" if least is None else f" of at least {least}" if most is None else f" from {least} to {most}"

    def read(text: str | int) -> int:
        try:
            value = int(str(text).encode("ascii"))
        except ValueError:
            value = None
        if value is None or (least is not None and value < least) or (most is not None and value > most):
            raise typer.BadParameter(f"it must be a whole number{bounds}, but got {text!r}")
        return value

    return read


def number(text: str | float) -> float:
    """Read a number of an option; whether it can be one of its kind is another's to say."""
    try:
        return float(str(text).encode("ascii"))
    except ValueError:
        raise typer.BadParameter(f"it must be a number, such as 82 or 30.5, but got {text!r}") from None
