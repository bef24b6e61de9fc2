"""A nested mapping, such as a search space, key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def leaves(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path of every key, with dots, and its value; a range of numbers is one value."""
    for name, value in content.items():
        if isinstance(value, Mapping) and not {"from", "to"} & value.keys():
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
