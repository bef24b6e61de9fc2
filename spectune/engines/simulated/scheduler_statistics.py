"""What the engine counts of its own work."""

from __future__ import annotations

import time
from dataclasses import dataclass

_QUIET_S = 1.0  # between two complaints about the clock


@dataclass(frozen=True)
class Tick:
    """The cycles between two decode lines: tokens per request and cycle, tok/s of all of them."""

    accept_length: float
    throughput: float


class Statistics:
    """Counts between decode lines, and the lifetime mean that only moves with them (facts, section 4.2).

    Attributes:
        last_throughput: tok/s of the last decode line.
    """

    def __init__(self, interval: int) -> None:
        self._interval = max(1, interval)
        self.last_throughput = 0.0
        self._clear()
        self.reset_lifetime()

    def note(self, batch: int, correct: int, tokens: int, seconds: float) -> None:
        """Count one cycle."""
        self._cycles += 1
        self._verifies += batch
        self._correct += correct
        self._tokens += tokens
        self._seconds += seconds

    @property
    def due(self) -> bool:
        """Whether a decode line is due."""
        return self._cycles >= self._interval

    def tick(self) -> Tick:
        """End the interval."""
        self._life_verifies += self._verifies
        self._life_correct += self._correct
        self.last_throughput = self._tokens / self._seconds if self._seconds else 0.0
        tick = Tick(1 + self._correct / max(1, self._verifies), self.last_throughput)
        self._clear()
        return tick

    def reset_lifetime(self) -> None:
        """Forget the lifetime mean, as a cache flush does."""
        self._life_verifies = self._life_correct = 0

    @property
    def lifetime_accept_length(self) -> float | None:
        """Mean tokens per verify up to the last decode line; None before the first."""
        return 1 + self._life_correct / self._life_verifies if self._life_verifies else None

    def _clear(self) -> None:
        self._cycles = self._verifies = self._correct = self._tokens = 0
        self._seconds = 0.0


class Lateness:
    """Whether the process keeps to its clock, in real seconds.

    Attributes:
        worst_s: Greatest lateness so far.
        late: Deliveries that were late.
    """

    def __init__(self, tolerance_s: float) -> None:
        self.worst_s = 0.0
        self.late = 0
        self._tolerance_s = tolerance_s
        self._fresh, self._fresh_worst_s = 0, 0.0
        self._quiet_until = 0.0

    def note(self, late_s: float) -> str | None:
        """Count one delivery; returns a complaint when one is due."""
        self.worst_s = max(self.worst_s, late_s)
        if late_s > self._tolerance_s:
            self.late += 1
            self._fresh += 1
            self._fresh_worst_s = max(self._fresh_worst_s, late_s)
        now = time.monotonic()
        if not self._fresh or now < self._quiet_until:
            return None
        message = (
            f"simulated engine behind its clock: {self._fresh} late deliveries, the worst by "
            f"{1000 * self._fresh_worst_s:.1f} ms; give it an idle core or a larger time scale"
        )
        self._fresh, self._fresh_worst_s, self._quiet_until = 0, 0.0, now + _QUIET_S
        return message
