"""Every candidate that may be launched, as two axes per block: a million of them cost no more than their parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spectune.engines.protocol import Engine
from spectune.search.guided.choices import Choices, first_matching
from spectune.search.guided.enumeration import parts
from spectune.space import Candidate, SearchSpace

Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Block:
    """Drafts of which each goes with each surrounding.

    Attributes:
        drafts: Algorithm, S, K, N and what the engine's rules couple to them.
        sides: Everything else, the environment included.
        allowed: Shape (drafts, sides): what no condition of the file forbids; None where all is allowed.
    """

    drafts: Choices
    sides: Choices
    allowed: Booleans | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Drafts and sides."""
        return len(self.drafts), len(self.sides)


@dataclass(frozen=True)
class CandidateTable:
    """All blocks; a candidate is a number that counts through them, the sides varying fastest.

    Attributes:
        blocks: Those without speculation first.
        draft_names: Parameters of the draft axis.
    """

    blocks: tuple[Block, ...]
    draft_names: frozenset[str]

    @classmethod
    def of(cls, space: SearchSpace, engine: Engine) -> CandidateTable:
        """List the parts of a space's candidates."""
        blocks: list[Block] = []
        names: set[str] = set()
        for branch in space.branches:
            names |= engine.draft_names([parameter.name for parameter in branch.parameters])
            for drafts, sides in parts(branch, engine):
                if drafts and sides:
                    forbid = space.forbid
                    allowed = first_matching(forbid, drafts, sides) == len(forbid) if forbid else None
                    blocks.append(Block(drafts, sides, allowed))
        return cls(tuple(blocks), frozenset(names))

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Number of the first candidate of each block, and behind the last one their total."""
        sizes = [rows * columns for rows, columns in (block.shape for block in self.blocks)]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def size(self) -> int:
        """Numbers in use, forbidden candidates included."""
        return int(self.offsets[-1])

    @cached_property
    def allowed(self) -> Booleans:
        """Whether each number is a candidate that may be launched."""
        masks = [np.ones(b.shape, np.bool_) if b.allowed is None else b.allowed for b in self.blocks]
        return np.concatenate([mask.ravel() for mask in masks]) if masks else np.zeros(0, np.bool_)

    def place(self, number: int) -> tuple[int, int, int]:
        """Return block, draft and side of a number."""
        block = int(np.searchsorted(self.offsets, number, side="right")) - 1
        draft, side = divmod(int(number - self.offsets[block]), len(self.blocks[block].sides))
        return block, draft, side

    def candidate(self, number: int) -> Candidate:
        """Return the candidate of a number."""
        block, draft, side = self.place(number)
        return Candidate(tuple(sorted(self.blocks[block].drafts[draft] + self.blocks[block].sides[side])))

    def number(self, candidate: Candidate) -> int | None:
        """Return the number of a candidate; None when it is not one of these."""
        draft = tuple(item for item in candidate.items if item[0] in self.draft_names)
        side = tuple(item for item in candidate.items if item[0] not in self.draft_names)
        for offset, block in zip(self.offsets, self.blocks, strict=False):
            row, column = block.drafts.number(draft), block.sides.number(side)
            if row is not None and column is not None:
                return int(offset) + row * len(block.sides) + column
        return None
