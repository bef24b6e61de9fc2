"""The `server_args=` line as a mapping, without evaluating it.

Up to 0.5.18 it is `ServerArgs(name=value, …)`, later a dict. Values are Python literals except where SGLang prints
objects; those stay text. A line that was cut gives the arguments before the cut.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

_OPEN, _CLOSE, _QUOTES = "([{<", ")]}>", "'\""
_NAME = re.compile(r"""\s*(?:(\w+)=|(['"])(\w+)\2:)\s*""")
_DEEPEST_VALUE = 20_000  # characters; a literal longer than this stays text


def parse_server_args(text: str) -> dict[str, Any]:
    """Return the arguments of what follows `server_args=`.

    Args:
        text: `ServerArgs(a=1, …)` or `{'a': 1, …}`, possibly cut anywhere, possibly followed by more text.
    """
    start = re.match(r"\s*(?:\w+\(|\{)", text)
    if start is None:
        return {}
    found: dict[str, Any] = {}
    for item in _items(text[start.end() :]):
        name = _NAME.match(item)
        if name is not None:
            found[name.group(1) or name.group(3)] = _value(item[name.end() :].strip())
    return found


def _items(text: str) -> Iterator[str]:
    """Split at the commas that no quote or bracket encloses; what a cut left unfinished is not an item."""
    depth, quote, begin, escaped = 0, "", 0, False
    for index, character in enumerate(text):
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\"
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
            if depth < 0:
                yield text[begin:index]
                return
        elif character == "," and depth == 0:
            yield text[begin:index]
            begin = index + 1


def _value(text: str) -> Any:
    if len(text) > _DEEPEST_VALUE:
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
