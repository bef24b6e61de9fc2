"""What a closed loop in virtual time has given: arrays first, request records when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spectune.bench.records import RequestRecord

if TYPE_CHECKING:
    from spectune.engines.simulated.virtual import ClosedLoop

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class VirtualLevel:
    """A level as the engine served it.

    Attributes:
        loop: What was asked for.
        first: Number of its first request within the launch.
        began_s: Simulated second at which it began.
        depth: Drafts that can be right in one cycle; 0 without speculation.
        cycle_begins_s: When each cycle began, after the prefill before it.
        cycle_ends_s: When it ended.
        starts: Per request, the first cycle it took part in.
        cycles: Per request, how many.
        correct: Drafts right, shape (requests, cycles or more).
        emitted: Tokens after each cycle, the same shape.
        aborted: Requests that were given up.
    """

    loop: ClosedLoop
    first: int
    began_s: float
    depth: int
    cycle_begins_s: Floats
    cycle_ends_s: Floats
    starts: Integers
    cycles: Integers
    correct: Integers
    emitted: Integers
    aborted: npt.NDArray[np.bool_]

    @property
    def accept_length(self) -> float:
        """Mean tokens per cycle of a request, bonus token included."""
        return 1.0 + float(self.correct[self._live].sum() / self.cycles.sum())

    @property
    def cycle_ms(self) -> float:
        """Mean time of the cycles."""
        return 1000 * float((self.cycle_ends_s - self.cycle_begins_s).mean())

    @property
    def decode_speed(self) -> float:
        """Mean tok/s that a request sees after its first token."""
        seconds = self.cycle_ends_s[self.starts + self.cycles - 1] - self.cycle_begins_s[self.starts]
        return float(((self._tokens - 1) / seconds).mean())

    @property
    def output_throughput(self) -> float:
        """tok/s of all requests together, over the whole level."""
        return float(self._tokens.sum() / (self.cycle_ends_s[-1] - self.began_s))

    @property
    def request_ends_s(self) -> Floats:
        """When each request ended, in seconds since the level's start."""
        ends: Floats = self.cycle_ends_s[self.starts + self.cycles - 1] - self.began_s
        return ends

    @property
    def accepted(self) -> Integers:
        """Drafts accepted of each request."""
        accepted: Integers = np.where(self._live, self.correct, 0).sum(axis=1)
        return accepted

    def class_of(self, index: int) -> str:
        """Return the class of a request's prompt."""
        classes = self.loop.classes
        return classes[(self.first + index) % len(classes)] if classes else "unknown"

    def chunks(self) -> tuple[Floats, Integers]:
        """Return when the chunks of all requests came, in seconds since the level's start, and the tokens in each."""
        live = self._live
        cycle = (self.starts[:, None] + np.arange(self.correct.shape[1]))[live]
        firsts = self.cycle_begins_s[self.starts]
        news = np.diff(self.emitted, axis=1, prepend=1)[live]
        times = np.concatenate([firsts, self.cycle_ends_s[cycle]]) - self.began_s
        return times, np.concatenate([np.ones(len(firsts), np.int64), news])

    def requests(self) -> list[RequestRecord]:
        """Return a record per request, in the order they were sent."""
        sent = self._sent_s()
        return [self._request(index, sent[index]) for index in range(self.loop.requests)]

    @property
    def _live(self) -> npt.NDArray[np.bool_]:
        live: npt.NDArray[np.bool_] = np.arange(self.correct.shape[1]) < self.cycles[:, None]
        return live

    @property
    def _tokens(self) -> Integers:
        tokens: Integers = self.emitted[np.arange(self.loop.requests), self.cycles - 1]
        return tokens

    def _sent_s(self) -> list[float]:
        """When each request was sent: the first ones at once, every other one when an earlier one ended."""
        ends = np.sort(self.request_ends_s)
        later: list[float] = ends[: max(0, self.loop.requests - self.loop.concurrency)].tolist()
        return [0.0] * min(self.loop.requests, self.loop.concurrency) + later

    def _request(self, index: int, sent_s: float) -> RequestRecord:
        start, cycles = int(self.starts[index]), int(self.cycles[index])
        times = (self.cycle_ends_s[start : start + cycles] - self.began_s).tolist()
        first_s = float(self.cycle_begins_s[start] - self.began_s)
        correct = self.correct[index, :cycles]
        histogram = np.bincount(correct).tolist() if self.depth else []
        aborted = bool(self.aborted[index])
        return RequestRecord(
            prompt_id=str(self.first + index),
            prompt_class=self.class_of(index),
            prompt_tokens=self.loop.prompt_tokens,
            output_tokens=int(self.emitted[index, cycles - 1]),
            cached_tokens=0,
            sent_s=sent_s,
            first_token_s=first_s,
            end_s=times[-1],
            chunks=((first_s, 1), *zip(times, self.emitted[index, :cycles].tolist(), strict=True)),
            spec_verify_ct=cycles if self.depth else 0,
            spec_num_correct_drafts=int(correct.sum()),
            spec_correct_drafts_histogram=tuple(histogram),
            finish_reason="abort" if aborted else "length",
            error="the engine aborted the request: simulated partial failure" if aborted else None,
        )
