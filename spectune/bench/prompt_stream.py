"""Deals out the prompts of a study, one after the other, so that every stretch has the same mix of classes."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterator

from spectune.bench.prompt_sources import Generator, Stratum, Workload
from spectune.bench.prompts import Prompt
from spectune.bench.shared_prefix import prefixed

_TRIES = 200
"""Repeats in a row after which a generator counts as exhausted."""


class PromptStream:
    """The prompts of a whole study, without end; level after level takes the next stretch of it.

    Which prompt comes n-th depends on the workload, the seed and n alone. Classes are dealt by smooth weighted
    round-robin, so in any stretch the count of a class differs from its share by about one at most: levels and trials
    get fresh prompts of the same mix. A study that is resumed continues at `position`.

    A prompt is used once as long as there are unused ones of its class. After that the class starts over in another
    order; `reused` counts those. A shared prefix goes to its share of the prompts of every class.
    """

    def __init__(self, workload: Workload, *, seed: int, start: int = 0) -> None:
        """Begin at prompt `start`.

        Args:
            workload: Where the prompts come from.
            seed: Of the study.
            start: How many prompts the study has used already.
        """
        self.position = 0
        self.reused = 0
        self._shares = [stratum.share for stratum in workload.strata]
        self._credit = [0.0] * len(self._shares)
        self._shared = workload.shared_prefix
        self._prefix = "" if self._shared is None else self._shared.text
        self._prefix_credit = [0.0] * len(self._shares)
        used: set[tuple[str, ...]] = set()
        self._supplies = [_supply(stratum, seed, used) for stratum in workload.strata]
        self.take(start)

    def __iter__(self) -> Iterator[Prompt]:
        return self

    def __next__(self) -> Prompt:
        """The next prompt."""
        self._credit = [credit + share for credit, share in zip(self._credit, self._shares, strict=True)]
        # Rounding keeps equal credits equal, so that the order does not hang on the last bit.
        chosen = max(range(len(self._credit)), key=lambda index: round(self._credit[index], 9))
        self._credit[chosen] -= 1.0
        prompt, repeated = next(self._supplies[chosen])
        self.position += 1
        self.reused += repeated
        return prefixed(prompt, self._prefix) if self._is_shared(chosen) else prompt

    def _is_shared(self, stratum: int) -> bool:
        if self._shared is None:
            return False
        self._prefix_credit[stratum] = round(self._prefix_credit[stratum] + self._shared.share, 9)
        shared = self._prefix_credit[stratum] >= 1.0
        self._prefix_credit[stratum] -= shared
        return shared

    def take(self, count: int) -> list[Prompt]:
        """The next `count` prompts."""
        return [next(self) for _ in range(count)]


def _supply(stratum: Stratum, seed: int, used: set[tuple[str, ...]]) -> Iterator[tuple[Prompt, bool]]:
    """(prompt, whether it was used before) of one stratum, without end."""
    rng = random.Random(f"{seed}:{stratum.name}")  # noqa: S311 (repeatable on purpose)
    pool: list[Prompt] = []
    others: list[Prompt] = []  # that another class has used before this one
    fresh = _drawn(stratum, stratum.supply, rng) if callable(stratum.supply) else _shuffled(stratum.supply, rng)
    for prompt in fresh:
        if prompt.content in used:
            others.append(prompt)
            continue
        used.add(prompt.content)
        pool.append(prompt)
        yield prompt, False
    for turn in itertools.count(2):
        for prompt in _shuffled(pool or others, rng):
            yield dataclasses.replace(prompt, prompt_id=f"{prompt.prompt_id}#{turn}"), True


def _drawn(stratum: Stratum, make: Generator, rng: random.Random) -> Iterator[Prompt]:
    """Prompts of a generator until it only repeats itself."""
    seen: set[str] = set()
    repeats = 0
    while repeats < _TRIES:
        text = make(rng)
        if text in seen:
            repeats += 1
            continue
        repeats = 0
        seen.add(text)
        yield Prompt(f"{stratum.name}:{len(seen)}", stratum.prompt_class, text=text)


def _shuffled(prompts: tuple[Prompt, ...] | list[Prompt], rng: random.Random) -> list[Prompt]:
    return rng.sample(prompts, len(prompts))
