"""Deals out the prompts of a study, one after the other, so that every stretch has the same mix of classes."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

from spectune.bench.prompt_sources import Generator, Stratum, Workload
from spectune.bench.prompts import Prompt
from spectune.bench.shared_prefix import prefixed
from spectune.errors import SpectuneError

_TRIES = 200
"""Repeats in a row after which a generator counts as exhausted."""


class PromptsExhaustedError(SpectuneError):
    """Every prompt of a class has been used, and using one twice was not allowed."""


class PromptStream:
    """The prompts of a whole study; level after level takes the next stretch of it.

    Which prompt comes n-th depends on the workload, the seed and n alone. Classes are dealt by smooth weighted
    round-robin, so in any stretch the count of a class differs from its share by about one at most: levels and trials
    get fresh prompts of the same mix. A study that is resumed continues at `position`.

    A prompt is used once as long as there are unused ones of its class. After that the class starts over in another
    order, if reuse is allowed; `reused` counts those. A shared prefix goes to its share of the prompts of every class.
    """

    def __init__(self, workload: Workload, *, seed: int, reuse: bool = True, start: int = 0) -> None:
        """Begin at prompt `start`.

        Args:
            workload: Where the prompts come from.
            seed: Of the study.
            reuse: Whether a class that runs out starts over; otherwise `PromptsExhaustedError` is raised.
            start: How many prompts the study has used already.
        """
        self.position = 0
        self.reused = 0
        self._names = [stratum.name for stratum in workload.strata]
        self._shares = [stratum.share for stratum in workload.strata]
        self._credit = [0.0] * len(self._shares)
        self._shared = workload.shared_prefix
        self._prefix = "" if self._shared is None else self._shared.text
        self._prefix_credit = [0.0] * len(self._shares)
        used: set[tuple[str, ...]] = set()
        self._supplies = [_supply(stratum, seed, used, reuse=reuse) for stratum in workload.strata]
        self.take(start)

    def __iter__(self) -> Iterator[Prompt]:
        return self

    def __next__(self) -> Prompt:
        """The next prompt.

        Raises:
            PromptsExhaustedError: If its class has run out and reuse is not allowed.
        """
        self._credit = [credit + share for credit, share in zip(self._credit, self._shares, strict=True)]
        # Rounding keeps equal credits equal, so that the order does not hang on the last bit.
        chosen = max(range(len(self._credit)), key=lambda index: round(self._credit[index], 9))
        self._credit[chosen] -= 1.0
        dealt = next(self._supplies[chosen], None)
        if dealt is None:
            raise PromptsExhaustedError(
                f"all prompts of {self._names[chosen]} have been used; give more prompts or allow their reuse"
            )
        prompt, repeated = dealt
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


def _supply(stratum: Stratum, seed: int, used: set[tuple[str, ...]], *, reuse: bool) -> Iterator[tuple[Prompt, bool]]:
    """(prompt, whether it was used before) of one stratum; endless if reuse is allowed."""
    rng = random.Random(f"{seed}:{stratum.name}")  # noqa: S311 (repeatable on purpose)
    pool: list[Prompt] = []
    fresh = _drawn(stratum, stratum.supply, rng) if callable(stratum.supply) else _shuffled(stratum.supply, rng)
    for prompt in fresh:
        if prompt.content in used:
            continue
        used.add(prompt.content)
        pool.append(prompt)
        yield prompt, False
    turn = 1
    while reuse and pool:
        turn += 1
        for prompt in _shuffled(pool, rng):
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
