"""What a level is asked to do, where it stands, and what it brought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spectune.bench.arrivals import Arrivals
from spectune.bench.client import Sampling
from spectune.bench.records import RequestRecord

StopReason = Literal["precision", "time", "prompts_exhausted", "failures", "hang", "stopped", "dominated"]


ENOUGH_REQUESTS = 8
"""That must have been answered before a level may end early."""


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """How a level is measured.

    Attributes:
        arrivals: When requests are sent.
        sampling: How the engine generates.
        precision: The level ends when the relative half-widths of speed and accept length are below this; the speed is
            the throughput in a closed loop, which must not be seen to rise or fall by more than this either. In an open
            loop the throughput is what is asked for, so there it is the tokens per second that one request sees.
        time_limit_s: Longest time to measure, warm-up not included, but what is cut off later.
        min_requests: Requests that must have been answered while measuring before precision may end the level.
        min_windows: Windows of `window_s` before precision may end the level.
        window_s: Shortest window, for the warm-up and the throughput.
        warmup_limit_s: Longest warm-up.
        warmup_tolerance: The warm-up of a closed loop ends when two consecutive windows differ by less than this and
            every slot has been through its first request, or 64 chunks of it; windows at the beginning of the measured
            time that differ by more from the later ones are cut off. The warm-up of an open loop ends when every
            request that arrived in its first half has ended: no trace of the empty engine that it began with is left
            then.
        drain_limit_s: How long requests in flight may take to end afterwards; what is left is closed.
        hang_s: The level is given up when no request gets a token for so long; while measuring and draining mostly
            much earlier, see `silence`.
        hang_floor_s: No silence shorter than this is a hang.
    """

    arrivals: Arrivals
    sampling: Sampling
    precision: float = 0.015
    time_limit_s: float = 30.0
    min_requests: int = ENOUGH_REQUESTS
    min_windows: int = 8
    window_s: float = 0.5
    warmup_limit_s: float = 10.0
    warmup_tolerance: float = 0.05
    drain_limit_s: float = 20.0
    hang_s: float = 120.0
    hang_floor_s: float = 5.0

    @property
    def most_failures(self) -> int:
        """Failures in a row after which the level is given up: twice what is in flight, 5 to 50."""
        return min(max(2 * self.arrivals.most_in_flight, 5), 50)


@dataclass(frozen=True, slots=True)
class LevelProgress:
    """Where a level stands, for a display or for giving up early.

    Attributes:
        phase: What is going on.
        elapsed_s: Since the level's start.
        completed: Requests that ended well.
        failed: Requests that did not.
        tokens_per_s: Mean throughput since measuring began; before that, since the start.
        speed_precision: Relative half-width so far; infinite while unknown.
        acceptance_precision: Likewise; asked for once the speed is known well enough.
    """

    phase: Literal["warm-up", "measuring", "draining"]
    elapsed_s: float
    completed: int
    failed: int
    tokens_per_s: float
    speed_precision: float
    acceptance_precision: float


@dataclass(frozen=True, slots=True)
class LevelRun:
    """What a level brought.

    Attributes:
        records: Every request that was sent, in the order of their ends; also those of warm-up and draining.
        measured_s: (start, end) of the steady state in seconds since the level's start: warm-up over, requests still
            arriving. None if the level ended in its warm-up.
        stop_reason: Why it ended; "hang" also when the engine fell silent only while the last requests were to end;
            "stopped" if it turns out that a silent engine was dying; "dominated" when whoever asked for the level had
            seen enough of it.
        warmup_converged: Whether the warm-up came to its end, or its time ran out.
        client_cpu: This process's CPU seconds per second while measuring; above 0.7 the client may be the limit.
        wall_s: Duration of everything.
        blind_s: Seconds after the warm-up in which this process was kept from looking.
    """

    records: tuple[RequestRecord, ...]
    measured_s: tuple[float, float] | None
    stop_reason: StopReason
    warmup_converged: bool
    client_cpu: float
    wall_s: float
    blind_s: float = 0.0
