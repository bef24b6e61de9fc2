"""Data classes that become JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any


class Jsonable:
    """A data class that becomes a JSON object: estimates as [est, lo, hi], tuples as lists."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {entry.name: _plain(getattr(self, entry.name)) for entry in fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    return value.to_json() if hasattr(value, "to_json") else value
