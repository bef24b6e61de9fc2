"""What `$` and backquotes begin in a shell text: how far it reaches, and the variable it names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spectune.errors import SpectuneError
from spectune.printable import printable

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ARRAY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[[@*]\]")
_DEFAULT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):?[-=](['\"]?)([^'\"$`\\{}]*)\2")
_SPECIAL = "@*#?$!-0123456789"


@dataclass(frozen=True)
class Expansion:
    """One expansion.

    Attributes:
        written: As it stands in the text.
        end: Where the text goes on.
        name: The variable, for `$NAME` and `${NAME}`.
        literal: What stands for it without a shell: a dollar alone is itself.
        quote_follows: Whether it only introduces a quote, as in `$'…'`.
        array: The array, for `${NAME[@]}`.
        default: What stands for it where the variable is not set, for `${NAME:-WORD}`.
    """

    written: str
    end: int
    name: str | None = None
    literal: str | None = None
    quote_follows: bool = False
    array: str | None = None
    default: str | None = None


def expansion_at(text: str, start: int, *, quoted: bool) -> Expansion:
    """Return the expansion that begins at `start`, where a `$` or a backquote stands.

    Raises:
        SpectuneError: When its bracket or backquote is never closed.
    """
    after = text[start + 1 : start + 2]
    name = _NAME.match(text, start + 1)
    if text[start] == "`":
        end = text.find("`", start + 1) + 1
        if end == 0:
            raise unclosed("`", text, start)
        return Expansion(text[start:end], end)
    if after == "(":
        end = closing(text, start + 1, "(", ")")
        return Expansion(text[start:end], end)
    if after == "{":
        return _braced(text, start)
    if name:
        return Expansion(text[start : name.end()], name.end(), name[0])
    if after and after in _SPECIAL:
        return Expansion(text[start : start + 2], start + 2)
    follows = after == "'" and not quoted
    return Expansion("$", start + 1, literal="$", quote_follows=follows)


def _braced(text: str, start: int) -> Expansion:
    end = closing(text, start + 1, "{", "}")
    inner = text[start + 2 : end - 1]
    array = _ARRAY.fullmatch(inner)
    if plain := _DEFAULT.fullmatch(inner):
        return Expansion(text[start:end], end, plain[1], default=plain[3])
    name_only = inner if _NAME.fullmatch(inner) else None
    return Expansion(text[start:end], end, name_only, array=array[1] if array else None)


def closing(text: str, start: int, opening: str, closing: str) -> int:
    """Return where the text goes on after the bracket that is opened at `start`.

    Raises:
        SpectuneError: When it is never closed.
    """
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == opening) - (text[place] == closing)
        if depth == 0:
            return place + 1
    raise unclosed(opening, text, start)


def unclosed(mark: str, text: str, place: int) -> SpectuneError:
    """Say that what `mark` opened at `place` is never closed."""
    line = text.count("\n", 0, place) + 1
    return SpectuneError(
        f"the {mark} before {printable(text[place + 1 : place + 21])!r} in line {line} is never closed"
    )
