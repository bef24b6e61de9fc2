"""Ways to draft, sorted so that what they share is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectune.search.evidence.setting import Setting

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Alike:
    """Ways to draft that share drafter and K.

    Attributes:
        drafter: Its name.
        topk: K.
        at: Where they stand among all.
        depths: Drafted tokens that can be right.
        tokens: N.
    """

    drafter: str
    topk: int
    at: Integers
    depths: Integers
    tokens: Integers


@dataclass(frozen=True)
class Drafts:
    """Ways to draft, those without a drafter in no group.

    Attributes:
        count: How many there are.
        groups: By drafter and K.
    """

    count: int
    groups: tuple[Alike, ...]

    @classmethod
    def of(cls, settings: Sequence[Setting]) -> Drafts:
        """Sort settings into groups."""
        members: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        for at, setting in enumerate(settings):
            if setting.drafter is not None:
                members.setdefault((setting.drafter, setting.topk), []).append((at, setting.depth, setting.tokens))
        groups = (Alike(drafter, topk, *np.array(rows).T) for (drafter, topk), rows in members.items())
        return cls(len(settings), tuple(groups))

    @property
    def drafters(self) -> list[str]:
        """Their drafters, in order of appearance."""
        return list(dict.fromkeys(group.drafter for group in self.groups))

    @property
    def widths(self) -> list[int]:
        """Each K of their trees."""
        return sorted({group.topk for group in self.groups if group.topk > 1})
