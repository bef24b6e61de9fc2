"""What an engine's rules make of an assignment, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectune.space import Candidate, Value

Assignment = Mapping[str, Any]
"""Raw values by parameter name, before the engine's rules have been applied."""


@dataclass(frozen=True)
class Illegal:
    """Why the engine would refuse an assignment, or die of it.

    Attributes:
        rule: Short stable name, for counting.
        reason: One sentence with the values.
    """

    rule: str
    reason: str


@dataclass(frozen=True)
class Part:
    """What an engine's rules say of some of an assignment's values, whatever the others are.

    Attributes:
        items: Names and values in canonical form, sorted by name.
        folded_by: Rules that rewrote or dropped values on the way there.
        illegal: Why no candidate with this part is launched.
        key: Of a draft part: all that the rest has to know of it.
    """

    items: tuple[tuple[str, Value], ...]
    folded_by: tuple[str, ...] = ()
    illegal: Illegal | None = None
    key: Any = None


def joined(draft: Part, rest: Part) -> Candidate:
    """Return the candidate of two parts that are both legal."""
    return Candidate(tuple(sorted(draft.items + rest.items)))
