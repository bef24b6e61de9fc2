"""The course of a level: when it is warm, from when on it counts, and when its figures are known.

The live client and virtual time ask the same questions here, ten times a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from spectune.bench.level import LevelPlan, StopReason
from spectune.bench.meter import TokenMeter, acceptance_precision, decode_precision, decode_speed
from spectune.bench.precision import relative_half_width, trend
from spectune.bench.records import RequestRecord

TICK_S = 0.1
FIRST_CHUNKS = 64
"""A request that has streamed so many chunks has been through everything that is slow the first time."""


class Streamed(Protocol):
    """A request as far as it has come."""

    @property
    def chunks(self) -> Sequence[tuple[float, int]]:
        """(time, completed tokens so far) for every chunk that carried new tokens."""
        ...


@dataclass(frozen=True, slots=True)
class Highest:
    """The highest that a level's speeds may still come out as, with 95 % confidence, in tokens per second.

    Attributes:
        decode_speed: What one request sees.
        output_throughput: All requests together.
    """

    decode_speed: float
    output_throughput: float

    def of(self, metric: str) -> float | None:
        """Of a metric by its name; None for those that have no bound before the end."""
        return {"decode_speed": self.decode_speed, "output_throughput": self.output_throughput}.get(metric)


GiveUp = Callable[[Highest], bool]
"""Says whether a level need not be measured any better than it is."""


class Course:
    """Decides over one level.

    Attributes:
        meter: What has arrived.
        began_s: From when on it counts: the end of the warm-up, or later where what came first turns out to have been
            warm-up, too; what comes afterwards may change that again.
        speed: Relative half-width of the speed, as last asked for.
        acceptance: Of the accept length, once the speed is known well enough to ask for it.
    """

    def __init__(self, plan: LevelPlan, give_up: GiveUp | None = None) -> None:
        self._plan, self._give_up = plan, give_up
        self.meter = TokenMeter()
        self.began_s = self._warm_s = 0.0
        self.speed = self.acceptance = float("inf")

    def steady(self, now_s: float) -> bool:
        """Whether the last two windows of a closed loop agree."""
        plan = self._plan
        return self.meter.steady(now_s, plan.window_s, plan.warmup_tolerance, plan.arrivals.most_in_flight)

    def begin(self, now_s: float) -> None:
        """The warm-up is over."""
        self.began_s = self._warm_s = now_s

    def known(self, now_s: float, records: Sequence[RequestRecord]) -> StopReason | None:
        """Why measuring ends now; None while it goes on.

        Args:
            now_s: Seconds since the level's start.
            records: Of the requests that have ended.
        """
        plan = self._plan
        if not plan.arrivals.open:
            self.began_s = self.meter.settled_s(self._warm_s, now_s, plan.window_s, plan.warmup_tolerance)
        batches = self.meter.batches(self.began_s, now_s, plan.window_s)
        self.speed = decode_precision(records) if plan.arrivals.open else relative_half_width(batches)
        self.acceptance = float("inf")
        if len(batches) >= plan.min_windows and self.speed <= plan.precision:
            self.acceptance = acceptance_precision(records)
            answered = sum(not record.failed and record.end_s > self.began_s for record in records)
            # A line through the windows that rises or falls: they agree with each other, and not with those to come.
            even = plan.arrivals.open or abs(trend(batches)) <= plan.precision
            if answered >= plan.min_requests and self.acceptance <= plan.precision and even:
                return "precision"
        if self._give_up is not None and len(batches) >= plan.min_windows and self._give_up(_highest(batches, records)):
            return "dominated"
        return "time" if now_s - self._warm_s >= plan.time_limit_s else None


def _highest(batches: Sequence[float], records: Sequence[RequestRecord]) -> Highest:
    seen, within = decode_speed(records), decode_precision(records)
    return Highest(
        decode_speed=float("inf") if seen is None else seen * (1.0 + within),
        output_throughput=fmean(batches) * (1.0 + relative_half_width(batches)),
    )


def been_through(first: Iterable[Streamed], ended: int, in_flight: int) -> bool:
    """Whether every slot of a closed loop has seen what is slow only once.

    A first phase that is slow but even, such as kernels compiled request by request, looks steady from
    within.

    Args:
        first: Those of the first `in_flight` requests that have not ended.
        ended: How many of them have.
        in_flight: Slots.
    """
    return ended + sum(len(request.chunks) >= FIRST_CHUNKS for request in first) >= in_flight
