"""What a reader should know before believing the figures of a level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spectune.analysis.launch_noise import long_enough, within_launch_variance
from spectune.analysis.measurement import LevelMeasurement
from spectune.counts import count

ROUTES_DISAGREE = 0.05
"""Cycle times by two routes further apart than this are reported (MEASUREMENT.md, Definitions)."""
CLIENT_IS_BUSY = 0.7
"""Share of a core above which the client may be what is measured (MEASUREMENT.md, 13)."""
STILL_CHANGING = 0.05
"""Change of the throughput while it is measured above which it was not steady, as for the end of a warm-up."""
MOSTLY_CACHED = 0.5
"""Share of the prompt tokens above which the prefill was not all real."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """Figures that speak for or against a level.

    Attributes:
        cycle_ms: Cycle as accept length / decode speed.
        inter_chunk_ms: Mean time between two chunks, which is the cycle where every cycle is sent by itself.
        cycles_per_chunk: Verifies, or without speculation tokens, per chunk after the first, by the engine's counters.
        failures: What went wrong with the requests that failed.
        cached_share: Prompt tokens from the prefix cache, of all; 0.0 where they are meant to come from there.
        client_cpu: Share of a core the client used.
        trend: Change of the throughput from the first to the last window, as far as it is beyond chance; 0.0 in an open
            loop, where it follows the arrivals.
    """

    cycle_ms: float
    inter_chunk_ms: float
    cycles_per_chunk: float
    failures: Sequence[str]
    cached_share: float
    client_cpu: float
    trend: float = 0.0

    def notes(self) -> list[str]:
        """Each doubt as a sentence."""
        notes: list[str] = []
        if self.failures:
            notes.append(f"{count(len(self.failures), 'request')} failed{the_first(self.failures)}")
        if (doubt := self._routes()) is not None:
            notes.append(doubt)
        if self.cached_share > MOSTLY_CACHED:
            notes.append(
                f"{self.cached_share:.0%} of the prompt tokens came from the prefix cache: they share text or came "
                "before"
            )
        if self.client_cpu > CLIENT_IS_BUSY:
            notes.append(f"the client used {self.client_cpu:.0%} of a core: it may be what limits the throughput")
        if abs(self.trend) > STILL_CHANGING:
            course = "rose" if self.trend > 0 else "fell"
            notes.append(
                f"the throughput {course} by {abs(self.trend):.0%} while it was measured, beyond chance: it was not "
                "steady, and a longer run may be faster or slower than its interval says"
            )
        return notes

    def _routes(self) -> str | None:
        if abs(self.inter_chunk_ms / self.cycle_ms - 1.0) <= ROUTES_DISAGREE:
            return None
        if abs(self.inter_chunk_ms / (self.cycle_ms * self.cycles_per_chunk) - 1.0) <= ROUTES_DISAGREE:
            return (
                f"the engine sends {self.cycles_per_chunk:.2f} cycles in a chunk: the {self.inter_chunk_ms:.2f} ms "
                f"between chunks are not the cycle, which takes {self.cycle_ms:.2f} ms"
            )
        return (
            f"two routes to the cycle time disagree: accept length / decode speed gives {self.cycle_ms:.2f} ms, "
            f"the time between chunks {self.inter_chunk_ms:.2f} ms"
        )


def too_short(level: LevelMeasurement, limit_s: float, enough: int) -> str | None:
    """Say that the speeds of a level are hardly known, and what would do; None where they are known.

    Args:
        level: What was measured.
        limit_s: The time limit that it ended at.
        enough: Answers that a level should have.
    """
    speeds = level.decode_speed, level.output_throughput
    longer_s = longer_limit_s(level, limit_s, enough)
    if longer_s is None:
        return None
    width = max(speed.relative_half_width for speed in speeds)
    known = f"known to no better than ±{width:.0%}" if math.isfinite(width) else "not known how exactly"
    return (
        f"{level.level} was not measured long enough: its speeds are {known} from {count(level.n_requests, 'answer')} "
        f"in {level.measured_s:.1f} s; a level_time_limit of {longer_s}s would give about {enough} answers"
    )


def longer_limit_s(level: LevelMeasurement, limit_s: float, enough: int) -> int | None:
    """Return the time limit in whole seconds that a level needs for its speeds to be known; None where they are known.

    Args:
        level: What was measured.
        limit_s: The time limit that it had.
        enough: Answers that a level should have.
    """
    if all(long_enough(within_launch_variance(speed)) for speed in (level.decode_speed, level.output_throughput)):
        return None
    return math.ceil(max(2.0 * limit_s, level.measured_s * enough / level.n_requests))


def the_first(failures: Sequence[str]) -> str:
    """The first of these as the end of a sentence."""
    return f"; the first: {failures[0]}" if failures else ""
