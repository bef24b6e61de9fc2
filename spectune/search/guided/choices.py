"""Many assignments as the parts they combine: a million of them cost what the parts cost, until one is looked at."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from spectune.space import Value
from spectune.space.conditions import Condition, Test

Integers = npt.NDArray[np.int64]
Items = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Choices:
    """Every combination of one part of each factor, numbered with the last factor varying fastest.

    Attributes:
        factors: Parts in canonical form, no name in two factors.
    """

    factors: tuple[Sequence[Items], ...]

    def __len__(self) -> int:
        return math.prod(self._sizes)

    def __iter__(self) -> Iterator[Items]:
        return (tuple(itertools.chain.from_iterable(parts)) for parts in itertools.product(*self.factors))

    def __getitem__(self, number: int) -> Items:
        found: Items = ()
        for factor in reversed(self.factors):
            number, at = divmod(number, len(factor))
            found = factor[at] + found
        return found

    @property
    def names(self) -> Collection[str]:
        """All that occur."""
        return self._factor_of.keys()

    def number(self, items: Items) -> int | None:
        """Return the number of an assignment, its items in any order of the factors; None when it is none of these."""
        if any(name not in self.names for name, _ in items):
            return None
        found = 0
        for index, numbers in enumerate(self._numbers):
            at = numbers.get(tuple(item for item in items if self._factor_of[item[0]] == index))
            if at is None:
                return None
            found = found * len(numbers) + at
        return found

    def each(self, name: str, judge: Callable[[Value | None], bool | int]) -> npt.NDArray[Any]:
        """Return what is said of the value that a name has in each combination, None where it has none."""
        index = self._factor_of.get(name)
        if index is None:
            return np.full(len(self), judge(None))
        return self._spread(index, np.array([judge(dict(part).get(name)) for part in self.factors[index]]))

    def concerning(self, names: Collection[str]) -> tuple[Choices, int]:
        """Return the combinations of the factors that have any of the names, and how often each of them comes."""
        concerned = {index for name, index in self._factor_of.items() if name in names}
        found = Choices(tuple(factor for index, factor in enumerate(self.factors) if index in concerned))
        return found, len(self) // max(1, len(found))

    def restricted(self, names: Collection[str]) -> tuple[list[Items], Integers]:
        """Return the different combinations of some names in the order they come, and which of them each one is."""
        kept: list[list[Items]] = []
        which = np.zeros(len(self), np.int64)
        for index, factor in enumerate(self.factors):
            different: dict[Items, int] = {}
            parts = [tuple(item for item in part if item[0] in names) for part in factor]
            at = [different.setdefault(part, len(different)) for part in parts]
            kept.append(list(different))
            if len(different) > 1:
                which = which * len(different) + self._spread(index, np.array(at, np.int64))
        return list(Choices(tuple(kept))), which

    def _spread(self, index: int, by_part: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each combination what its part of one factor has."""
        before, after = math.prod(self._sizes[:index]), math.prod(self._sizes[index + 1 :])
        return np.tile(np.repeat(by_part, after), before)

    @property
    def _sizes(self) -> list[int]:
        return [len(factor) for factor in self.factors]

    @cached_property
    def _numbers(self) -> list[Mapping[Items, int]]:
        return [{part: number for number, part in enumerate(factor)} for factor in self.factors]

    @cached_property
    def _factor_of(self) -> Mapping[str, int]:
        return {name: index for index, factor in enumerate(self.factors) for part in factor for name, _ in part}


def first_matching(forbid: Sequence[Condition], drafts: Choices, sides: Choices) -> npt.NDArray[np.int16]:
    """Return which condition is the first that holds for each draft beside each side, their count where none does.

    A condition holds when each of its names passes, wherever it stands.
    """
    found = np.full((len(drafts), len(sides)), len(forbid), np.int16)
    for index in reversed(range(len(forbid))):
        on_draft, on_side = np.ones(len(drafts), np.bool_), np.ones(len(sides), np.bool_)
        for name, tests in forbid[index].tests:
            axis, passed = (drafts, on_draft) if name in drafts.names else (sides, on_side)
            passed &= axis.each(name, partial(_passes, tests))
        found[np.ix_(on_draft, on_side)] = index
    return found


def _passes(tests: Sequence[Test], value: Value | None) -> bool:
    return any(test.holds(value) for test in tests)
