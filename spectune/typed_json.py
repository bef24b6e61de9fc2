"""Values read from JSON, held to the types that they should have."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def require_types(value: T) -> T:
    """Return a dataclass if every field holds what it declares: a finite number where one is meant, no text.

    Raises:
        TypeError: Naming the first field that does not, with its value.
    """
    kind: Any = type(value)
    for name, hint in _hints(kind).items():
        found = getattr(value, name)
        if not _fits(found, hint):
            raise TypeError(f"{name} must be {_spelled(hint)}, but got {repr(found)[:80]}")
    return value


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(inner, parts[0]) for inner in value)
    if origin is not None:  # a mapping
        return isinstance(value, Mapping) and all(
            _fits(key, parts[0]) and _fits(inner, parts[1]) for key, inner in value.items()
        )
    if hint in (int, float):
        kinds = int if hint is int else int | float
        return isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value)
    return hint is Any or isinstance(value, hint)


def _spelled(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and get_origin(hint) is None else str(hint).replace("typing.", "")


def whole_number(value: Any) -> int | None:
    """Return a value that is a whole number, None for any other: true and false are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return a value that is an object, an empty one for any other."""
    return value if isinstance(value, Mapping) else {}


def objects_of(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a list, an empty list for any other value."""
    return [mapping_of(entry) for entry in value] if isinstance(value, list | tuple) else []


def count_of(value: Any) -> int:
    """Return a whole number that is not negative.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"a count must be a whole number, but got {value!r}")
    return value


def words_of(value: Any) -> str:
    """Return a text.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(value, str):
        raise TypeError(f"a text must be a string, but got {value!r}")
    return value
