"""The engine in virtual time: closed loops served in process, without sleeping, cycle by cycle in whole arrays."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectune.engines.simulated.faults import POINTS, Failure
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.profile_schema import Point
from spectune.engines.simulated.randomness import DRAWS, acceptance_draws
from spectune.engines.simulated.virtual_level import VirtualLevel
from spectune.errors import SpectuneError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ClosedLoop:
    """A fixed number of requests in flight until all have been answered.

    Attributes:
        concurrency: Requests in flight; fewer run where the engine holds fewer.
        requests: Requests in all.
        prompt_tokens: Of every request.
        output_tokens: Of every request, at least 2.
        first_outputs: Of the first requests, where they have fewer; at least 2 each.
        classes: Classes of the prompts, taken in turn; none without.
    """

    concurrency: int
    requests: int
    prompt_tokens: int
    output_tokens: int
    classes: tuple[str, ...] = ()
    first_outputs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        assert min(self.concurrency, self.requests, self.prompt_tokens) >= 1
        shortest = min((*self.first_outputs, self.output_tokens))
        assert shortest >= 2, "the first token comes from the prefill, so one token would take no cycle"
        assert max((*self.first_outputs, 2)) <= self.output_tokens, "only less than the others"

    @property
    def tokens(self) -> int:
        """Tokens that a request holds at its end."""
        return self.prompt_tokens + self.output_tokens

    @property
    def outputs(self) -> Integers:
        """Tokens of each request."""
        outputs = np.full(self.requests, self.output_tokens)
        firsts = self.first_outputs[: self.requests]
        outputs[: len(firsts)] = firsts
        return outputs


class VirtualEngine:
    """A launch that serves in virtual time; its clock goes on from level to level.

    Attributes:
        launch: The model behind it.
        clock_s: Simulated seconds it has served.
    """

    def __init__(self, launch: SimulatedLaunch) -> None:
        self.launch = launch
        self.clock_s = 0.0
        self._served = 0

    @property
    def failure(self) -> Failure | None:
        """What keeps it from measuring anything; requests given up one by one do not."""
        first = self.launch.plan.first_decisive
        kept = {"partial_failure", "garbage_output"}
        return None if first is None or first.kind in kept or first.at == "shutdown" else first

    def serve(self, loop: ClosedLoop, *, until: Point = "bench") -> VirtualLevel:
        """Serve a closed loop to its last request.

        Args:
            loop: What is asked.
            until: The point of the launch that it is a part of; failures at later ones do not concern it.

        Raises:
            SpectuneError: The launch fails, or a request does not fit into the KV cache.
        """
        if self.failure is not None and POINTS.index(self.failure.at) <= POINTS.index(until):
            raise SpectuneError(f"the simulated launch fails: {self.failure.kind} at {self.failure.at}")
        if loop.tokens > self.launch.kv_tokens:
            raise SpectuneError(
                f"a request of {loop.tokens} tokens exceeds the KV cache of {self.launch.kv_tokens} tokens"
            )
        first = self._served
        outputs = loop.outputs
        correct = self._correct_drafts(loop, first)
        emitted = 1 + np.cumsum(correct + 1, axis=1)
        cycles = np.argmax(emitted >= outputs[:, None], axis=1) + 1
        aborted = self._aborted(first, loop.requests)
        cycles[aborted] = 1
        starts = _starts(cycles, self.launch.running(loop.concurrency, loop.tokens))
        ends = starts + cycles
        held = np.concatenate([np.ones((loop.requests, 1), np.int64), emitted[:, :-1]], axis=1) + loop.prompt_tokens
        works = self._work_ms(loop, first, starts, ends, held)
        begins, finishes = self._times(loop, starts, works)
        began_s, self.clock_s, self._served = self.clock_s, float(finishes[-1]), first + loop.requests
        return VirtualLevel(
            loop=loop,
            first=first,
            began_s=began_s,
            depth=self.launch.setup.depth if self.launch.setup.speculative else 0,
            cycle_begins_s=begins,
            cycle_ends_s=finishes,
            starts=starts,
            cycles=cycles,
            correct=correct,
            emitted=np.minimum(emitted, outputs[:, None]),
            aborted=aborted,
        )

    def _correct_drafts(self, loop: ClosedLoop, first: int) -> Integers:
        """Return the drafts right in each verify of each request, shape (requests, enough verifies)."""
        launch, count = self.launch, loop.requests
        if not launch.setup.speculative:
            return np.zeros((count, loop.output_tokens - 1), np.int64)
        done = np.ones(count, np.int64)
        blocks: list[Integers] = []
        while done.min() < loop.output_tokens:
            draws = acceptance_draws(launch.profile.file.seed, launch.number, len(blocks), first, count)
            block = np.zeros((count, DRAWS), np.int64)
            for survival in self._survivals(loop, first, done).T:
                block += draws < survival[:, None]
            blocks.append(block)
            done += block.sum(axis=1) + DRAWS
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)

    def _survivals(self, loop: ClosedLoop, first: int, done: Integers) -> Floats:
        """Return P(at least d right) per request, shape (requests, depth), at the context each has reached."""
        launch = self.launch
        numbers = range(first, first + loop.requests)
        if launch.profile.file.acceptance.context_halving_ktokens > 0:
            contexts = (loop.prompt_tokens + np.minimum(done, loop.output_tokens)).tolist()
        else:
            contexts = [0] * loop.requests
        classes: tuple[str | None, ...] = loop.classes or (None,)
        rows = [
            launch.survivals(classes[number % len(classes)], context)
            for number, context in zip(numbers, contexts, strict=True)
        ]
        survivals = np.array(rows)
        if any(fault.kind == "zero_acceptance" for _, fault in launch.plan.due):
            survivals[[launch.fault("zero_acceptance", number) is not None for number in numbers]] = 0.0
        return survivals

    def _aborted(self, first: int, count: int) -> npt.NDArray[np.bool_]:
        if all(fault.kind != "partial_failure" for _, fault in self.launch.plan.due):
            return np.zeros(count, np.bool_)
        return np.array([self.launch.aborts(number) for number in range(first, first + count)])

    def _work_ms(self, loop: ClosedLoop, first: int, starts: Integers, ends: Integers, held: Integers) -> Floats:
        """Return the noiseless time of every cycle, the slow first requests included."""
        launch = self.launch
        count = int(ends.max())
        batches = np.cumsum(np.bincount(starts, minlength=count + 1) - np.bincount(ends, minlength=count + 1))[:count]
        by_batch = np.array([launch.cycle_ms(batch, 0.0) if batch else 0.0 for batch in range(int(batches.max()) + 1)])
        works: Floats = by_batch[batches]
        if launch.kv_ms_per_token:
            column = np.arange(held.shape[1])
            live = column < (ends - starts)[:, None]
            at = (starts[:, None] + column)[live]
            works = works + launch.kv_ms_per_token * np.bincount(at, weights=held[live], minlength=count)
        slow, factor = launch.slow_requests()
        if slow > first:
            mask = np.zeros(count, np.bool_)
            for number in range(min(loop.requests, slow - first)):
                mask[starts[number] : ends[number]] = True
            works[mask] *= factor
        return works

    def _times(self, loop: ClosedLoop, starts: Integers, works: Floats) -> tuple[Floats, Floats]:
        """Return when each cycle begins and ends, in simulated seconds.

        The factor of a cycle is that of the second it begins in, and that depends on the factors before it; each pass
        makes at least one more second right, and mostly all of them at once.
        """
        joining = np.bincount(starts, minlength=len(works))
        by_count = [self.launch.prefill_ms(count * loop.prompt_tokens) for count in range(1, int(joining.max()) + 1)]
        prefills = np.array([0.0, *by_count])[joining] / 1000
        seconds = works / 1000
        factors: Floats = np.ones(len(works))
        windows: Integers | None = None
        while True:
            durations = seconds * factors
            finishes = self.clock_s + np.cumsum(prefills + durations)
            begins = finishes - durations
            found = begins.astype(np.int64)
            if windows is not None and np.array_equal(found, windows):
                return begins, finishes
            windows = found
            factors = self.launch.pace.factors(int(found[-1]) + 1)[found]


def _starts(cycles: Integers, slots: int) -> Integers:
    """Return the cycle each request begins at, when `slots` run at once and the next takes the first free slot."""
    if len(cycles) <= slots:
        return np.zeros(len(cycles), np.int64)
    free = [0] * slots
    starts = []
    for length in cycles.tolist():
        start = free[0]
        starts.append(start)
        heapq.heapreplace(free, start + length)
    return np.array(starts)
