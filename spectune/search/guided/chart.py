"""The candidate table in numbers: codes of every part and the physics of every pair, computed once for a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from spectune.engines.protocol import Engine
from spectune.search.evidence.setting import RELEVANT, Setting
from spectune.search.guided.choices import Choices
from spectune.search.guided.encoding import Axis, Codes, encode
from spectune.search.guided.physics import Works
from spectune.search.guided.table import Block, CandidateTable
from spectune.space import Candidate, SearchSpace

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BlockChart:
    """One block of the table.

    Attributes:
        drafts: Codes of the drafts, shape (drafts, draft axes).
        sides: Codes of the sides, shape (sides, side axes).
        settings: Index of each pair's setting, shape (drafts, sides).
    """

    drafts: Codes
    sides: Codes
    settings: Integers


@dataclass(frozen=True)
class Chart:
    """All blocks.

    Attributes:
        table: What is charted.
        axes: Parameters that vary, those of the draft first.
        draft_axes: How many these are.
        blocks: In the order of the table's.
        works: The different settings.
        drafters: All that occur.
        fixed: Arguments of the engine that every launch has.
    """

    table: CandidateTable
    axes: tuple[Axis, ...]
    draft_axes: int
    blocks: tuple[BlockChart, ...]
    works: Works
    drafters: tuple[str, ...]
    fixed: Mapping[str, Any]

    @classmethod
    def of(cls, space: SearchSpace, engine: Engine) -> Chart:
        """Chart a space."""
        table = CandidateTable.of(space, engine)
        varied = [p for p in space.parameters.values() if not p.is_fixed]
        draft = [Axis.of(p) for p in varied if p.name in table.draft_names]
        side = [Axis.of(p) for p in varied if p.name not in table.draft_names]
        fixed = space.engine.args
        settings: dict[Setting, int] = {}
        blocks = tuple(
            BlockChart(
                _codes(draft, block.drafts),
                _codes(side, block.sides),
                _settings(block, fixed, settings),
            )
            for block in table.blocks
        )
        drafters = tuple(sorted({setting.drafter for setting in settings if setting.drafter is not None}))
        concurrencies = [level.concurrency for level in space.workload.levels if level.concurrency is not None]
        works = Works.of(list(settings), concurrencies, drafters)
        return cls(table, (*draft, *side), len(draft), blocks, works, drafters, fixed)

    @property
    def depth(self) -> int:
        """Deepest draft."""
        return max((setting.depth for setting in self.works.settings), default=0)

    def setting(self, candidate: Candidate) -> Setting:
        """Return the setting of any candidate."""
        return self._known(candidate)[0]

    def codes(self, candidates: Sequence[Candidate]) -> Codes:
        """Return the codes of candidates, shape (n, axes)."""
        found = [self._known(candidate)[1] for candidate in candidates]
        return np.array(found, np.int64).reshape(len(found), len(self.axes))

    def _known(self, candidate: Candidate) -> tuple[Setting, Codes]:
        """Return setting and codes of a candidate, kept: those launched are asked for again by every fit."""
        if candidate not in self._read:
            setting = Setting.of({**self.fixed, **candidate.values})
            self._read[candidate] = setting, encode(self.axes, [candidate.values])[0]
        return self._read[candidate]

    @cached_property
    def _read(self) -> dict[Candidate, tuple[Setting, Codes]]:
        return {}

    def codes_at(self, numbers: Integers) -> Codes:
        """Return the codes of numbers of the table, shape (n, axes)."""
        found = np.empty((len(numbers), len(self.axes)), np.int64)
        for block, at, drafts, sides in self._places(numbers):
            found[at] = np.hstack([block.drafts[drafts], block.sides[sides]])
        return found

    def settings_at(self, numbers: Integers) -> Integers:
        """Return the index of the setting of numbers of the table."""
        found = np.empty(len(numbers), np.int64)
        for block, at, drafts, sides in self._places(numbers):
            found[at] = block.settings[drafts, sides]
        return found

    def _places(self, numbers: Integers) -> Iterator[tuple[BlockChart, Integers, Integers, Integers]]:
        """Yield each block with those of the numbers that lie in it: where they stand, their drafts and sides."""
        offsets = self.table.offsets
        blocks = np.searchsorted(offsets, numbers, side="right") - 1
        for index in np.unique(blocks):
            at, block = np.flatnonzero(blocks == index), self.blocks[index]
            drafts, sides = np.divmod(numbers[at] - offsets[index], len(block.sides))
            yield block, at, drafts, sides

    def spread(self, by_setting: Floats) -> Floats:
        """Return what each setting has for each candidate, shape (candidates,)."""
        return np.concatenate([by_setting[block.settings].ravel() for block in self.blocks])


def _codes(axes: Sequence[Axis], choices: Choices) -> Codes:
    """Return the codes of every choice, shape (choices, axes)."""
    found = np.empty((len(choices), len(axes)), np.int64)
    for column, axis in enumerate(axes):
        found[:, column] = choices.each(axis.name, axis.code)
    return found


def _settings(block: Block, fixed: Mapping[str, Any], known: dict[Setting, int]) -> Integers:
    """Return the setting of each pair, entering new ones; parts that agree in what matters are looked at once."""
    drafts, draft_of = block.drafts.restricted(RELEVANT)
    sides, side_of = block.sides.restricted(RELEVANT)
    found = np.empty((len(drafts), len(sides)), np.int64)
    for row, draft in enumerate(drafts):
        for column, side in enumerate(sides):
            setting = Setting.of({**fixed, **dict(draft), **dict(side)})
            found[row, column] = known.setdefault(setting, len(known))
    return found[np.ix_(draft_of, side_of)]
