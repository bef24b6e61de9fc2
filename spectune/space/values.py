"""What a parameter can be set to, in one canonical form that never depends on how it was written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

Scalar = str | int | float | bool
Value = Scalar | tuple[Scalar, ...]

UNSET = "unset"
"""The value of an `env.NAME` parameter that is absent from the workers' environment."""

_EXACT_FLOAT = 2.0**53


def canonical(raw: object) -> Value:
    """Return `raw` as a `Value`: lists become tuples, whole floats become integers, booleans stay booleans.

    Raises:
        ValueError: `raw` is null, not finite, a text with NUL in it, a mapping, an empty list or a list inside a list.
    """
    if isinstance(raw, list | tuple):
        if not raw:
            raise ValueError("an empty list is not a value")
        return tuple(_scalar(item) for item in raw)
    return _scalar(raw)


def _scalar(raw: object) -> Scalar:
    if isinstance(raw, str) and "\0" in raw:
        raise ValueError(f"no program can be given a text with the character NUL in it, but got {raw[:80]!r}")
    if isinstance(raw, bool | str | int):
        return raw
    if isinstance(raw, float):
        if not math.isfinite(raw):
            raise ValueError(f"a number must be finite, but got {raw}")
        return int(raw) if raw.is_integer() and abs(raw) < _EXACT_FLOAT else raw
    if raw is None:
        raise ValueError("null is not a value; leave the name out, or write unset for an env.NAME that must be absent")
    kind = (
        "list inside a list" if isinstance(raw, list | tuple) else "mapping" if isinstance(raw, Mapping) else "object"
    )
    raise ValueError(f"a value must be a string, a number, true or false, or a list of these, but got a {kind}: {raw}")


def canonical_json(value: Value | Mapping[str, Value]) -> str:
    """Return the one JSON text of a value; equal exactly for values that are the same to an engine."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def text_of(value: Value) -> str:
    """Return a value as a person would write it: `true`, `3`, `triton`, `[1, 2, 4]`."""
    if isinstance(value, tuple):
        return "[" + ", ".join(text_of(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
