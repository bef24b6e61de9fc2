"""When requests are sent: the next as one ends (closed loop), or by the clock whatever the engine does (open loop)."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

MOST_IN_FLIGHT = 1024
"""Requests an open loop has in flight at most; an engine that far behind is not measured by sending it more."""


class Arrivals(Protocol):
    """A rule by which requests arrive."""

    @property
    def open(self) -> bool:
        """Whether requests arrive by the clock."""
        ...

    @property
    def most_in_flight(self) -> int:
        """How many requests may be under way at once; those that are due wait for room."""
        ...

    def due(self) -> Iterator[float | None]:
        """When each request is due, seconds since the level's start; None: as soon as there is room. Endless."""
        ...


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """As many users as `concurrency`, each of whom asks again once answered."""

    concurrency: int
    open: ClassVar[bool] = False

    def __post_init__(self) -> None:
        assert self.concurrency >= 1, "a level has at least one request in flight"

    @property
    def most_in_flight(self) -> int:
        """All of them, all the time."""
        return self.concurrency

    def due(self) -> Iterator[float | None]:
        """No request has a time of its own."""
        return itertools.repeat(None)


def first_answer(slot: int, slots: int, output_tokens: int) -> int:
    """How long the first answer in a slot of a closed loop may be, so that from then on answers end one by one.

    Answers that begin together and are equally long would go on ending together. Without speculation they would do so
    for ever, and no answer would stand still for another's prompt; with speculation they soon would not, and nearly all
    would. Users who come and go wait for each other's prompts with both.

    Args:
        slot: Which one, from 0.
        slots: How many there are.
        output_tokens: Length of an answer.
    """
    return max(2, math.ceil(output_tokens * (slot + 1) / slots))


@dataclass(frozen=True, slots=True)
class Poisson:
    """Independent users: exponential gaps between arrivals.

    The same rate and seed give the same arrivals, so that every launch of a study is asked at the same moments.

    Attributes:
        rate: Requests per second in the long run.
        seed: Of the gaps.
        most_in_flight: See `Arrivals`.
    """

    rate: float
    seed: int = 0
    most_in_flight: int = MOST_IN_FLIGHT
    open: ClassVar[bool] = True

    def __post_init__(self) -> None:
        assert self.rate > 0, "requests arrive"

    def due(self) -> Iterator[float | None]:
        """Sums of exponential gaps; the first request is due after the first gap."""
        rng = random.Random(f"{self.seed}:poisson")  # noqa: S311 (repeatable on purpose)
        gaps = (rng.expovariate(1.0) for _ in itertools.count())
        return (unit / self.rate for unit in itertools.accumulate(gaps))


@dataclass(frozen=True, slots=True)
class Trace:
    """Recorded arrivals, as fast as they were or faster, over and over.

    Attributes:
        times_s: Recorded times in ascending order, at least two and not all the same.
        speed: 1 as recorded, 2 in half the time.
        most_in_flight: See `Arrivals`.
    """

    times_s: tuple[float, ...]
    speed: float = 1.0
    most_in_flight: int = MOST_IN_FLIGHT
    open: ClassVar[bool] = True

    def __post_init__(self) -> None:
        assert len(self.times_s) > 1, "a trace has at least two arrivals"
        assert self.times_s[0] < self.times_s[-1], "a trace takes time"
        assert self.speed > 0, "time goes forward"

    @property
    def rate(self) -> float:
        """Requests per second in the long run."""
        return (len(self.times_s) - 1) / (self.times_s[-1] - self.times_s[0]) * self.speed

    def due(self) -> Iterator[float | None]:
        """The first request is due at once; a mean gap lies between two turns."""
        start, turn_s = self.times_s[0], len(self.times_s) / self.rate
        for turn in itertools.count():
            for time_s in self.times_s:
                yield turn * turn_s + (time_s - start) / self.speed
