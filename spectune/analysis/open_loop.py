"""Whether an engine keeps up with requests that arrive by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from spectune.bench.records import RequestRecord

FALLS_BEHIND = 3.3
"""An engine that keeps up ends as many requests as arrive. Both counts scatter like Poisson's, so the difference of an
engine that keeps up exceeds 2.33 · √(2 · arrivals) once in a hundred levels."""
LATE_S = 0.01
"""Requests sent later than this after they were due are reported: an open loop that cannot send is closed."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Requests coming and going in the steady state of an open loop.

    Attributes:
        arrived: Requests due in it.
        ended: Requests that ended in it, well or not.
        waiting: Requests under way when it began, and when it ended.
        seconds: Its length.
        filled: Whether, when it began, all that had arrived in the first half of the time so far had ended.
        late_s: 95th percentile of the time from due to sent.
    """

    arrived: int
    ended: int
    waiting: tuple[int, int]
    seconds: float
    filled: bool
    late_s: float

    @property
    def offered_rate(self) -> float:
        """Requests per second that arrived."""
        return self.arrived / self.seconds

    @property
    def achieved_rate(self) -> float:
        """Requests per second that ended."""
        return self.ended / self.seconds

    @property
    def falls_behind(self) -> bool:
        """Whether more requests arrive than end, beyond chance."""
        return self.arrived - self.ended > FALLS_BEHIND * sqrt(self.arrived)

    def notes(self) -> list[str]:
        """What a reader should know before believing a latency."""
        notes: list[str] = []
        if self.falls_behind:
            notes.append(
                f"the engine does not keep up: {self.offered_rate:.3g} requests/s arrive and {self.achieved_rate:.3g} "
                f"end; {self.waiting[0]} were under way at the start and {self.waiting[1]} at the end, so latencies "
                "grow for as long as it is measured"
            )
        elif not self.filled:
            notes.append(
                "the engine was still filling up when its measurement began: later requests waited longer than these"
            )
        if self.late_s > LATE_S:
            notes.append(
                f"requests went out up to {1000 * self.late_s:.0f} ms after they were due (95th percentile); their "
                "latencies count from when they were due"
            )
        return notes


def flow(records: Sequence[RequestRecord], steady_s: tuple[float, float]) -> Flow | None:
    """Count what comes and goes in (start, end) of a level; None in a closed loop."""
    timed = [(record, record.due_s) for record in records if record.due_s is not None]
    if not timed:
        return None
    start_s, end_s = steady_s
    late = sorted(record.sent_s - due_s for record, due_s in timed if start_s <= due_s < end_s)
    under_way = [
        [due_s for record, due_s in timed if due_s <= time_s < record.end_s] for time_s in steady_s
    ]  # fmt: skip
    return Flow(
        arrived=len(late),
        ended=sum(start_s <= record.end_s < end_s for record, _ in timed),
        waiting=(len(under_way[0]), len(under_way[1])),
        seconds=end_s - start_s,
        filled=min(under_way[0], default=start_s) >= start_s / 2,
        late_s=late[int(0.95 * (len(late) - 1))] if late else 0.0,
    )
