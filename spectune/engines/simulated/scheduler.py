"""Continuous batching against the clock: prefill, then one cycle after another at the running concurrency."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from spectune.engines.simulated.generation import Generation
from spectune.engines.simulated.launch import WARMUP_REQUESTS, SimulatedLaunch
from spectune.engines.simulated.log import EngineLog
from spectune.engines.simulated.prefix_cache import PrefixCache
from spectune.engines.simulated.profile_schema import Point
from spectune.engines.simulated.scheduler_statistics import Lateness, Statistics

GRACE_S = 0.003  # real time after a finished request in which the client's next one still joins the coming cycle
LATE_S = 0.002  # real time by which a chunk may be late before the engine counts itself behind its clock
TICK_S = 0.001  # real time the event loop rounds its waiting up to
HOPELESS_S = 0.25  # behind by more, it starts its clock anew


class Scheduler:
    """The batch of one engine.

    Attributes:
        running: Requests in the batch.
        waiting: Requests in the queue, first come first.
        statistics: What its decode lines and `/server_info` say.
        lateness: How well it keeps to its clock.
        emptied: Set while there is nothing to do.
        busy_s: Simulated seconds it has worked; idle time does not count, so both forms meet the same noise.
    """

    def __init__(
        self, launch: SimulatedLaunch, log: EngineLog, cache: PrefixCache, *, time_scale: float, log_interval: int
    ) -> None:
        """Set it up.

        Args:
            launch: The model of the launch.
            log: Where its lines go.
            cache: Prompts it has seen.
            time_scale: Real seconds per simulated one.
            log_interval: Cycles between two decode lines.
        """
        self._launch, self._log, self._cache, self._scale = launch, log, cache, time_scale
        self.running: list[Generation] = []
        self.waiting: deque[Generation] = deque()
        self.statistics = Statistics(log_interval)
        self.lateness = Lateness(LATE_S)
        self.busy_s = 0.0
        self.emptied = asyncio.Event()
        self._arrived = asyncio.Event()
        self._passed: Callable[[Point], None] = lambda _: None
        self._ahead: list[tuple[int, Point]] = [(0, "warmup"), (WARMUP_REQUESTS, "bench")]
        self._stopped = False
        self._delay_s = 0.0

    def on_point(self, passed: Callable[[Point], None]) -> None:
        """Call `passed` when the launch reaches `warmup` and `bench`."""
        self._passed = passed

    def reach(self, request: int) -> None:
        """Note that a request, by its number within the launch, is being dealt with: it may be the first of a point."""
        while self._ahead and request >= self._ahead[0][0]:
            self._passed(self._ahead.pop(0)[1])

    def submit(self, generation: Generation) -> None:
        """Take a request into the queue."""
        self.waiting.append(generation)
        self.emptied.clear()
        self._arrived.set()

    def delay(self, seconds: float) -> None:
        """Let the next cycle take so many simulated seconds more."""
        self._delay_s += seconds

    def stop(self) -> None:
        """Make no further progress, as in a collective that does not come back."""
        self._stopped = True

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self.running and not self.waiting

    async def run(self) -> None:
        """Serve for ever."""
        loop = asyncio.get_running_loop()
        while True:
            self._arrived.clear()
            if self.idle:
                self.emptied.set()
                await self._arrived.wait()
            due = loop.time()
            joining = True
            while not self.idle:
                earliest = due + GRACE_S if joining else due
                await self._until(earliest)
                due = await self._admit(due, earliest)
                joining = False
                if self.running:
                    due, joining = await self._cycle(due)
                due = max(due, loop.time() - HOPELESS_S)

    async def _admit(self, due: float, earliest: float) -> float:
        """Prefill everything that fits into the batch; returns when that is done.

        Args:
            due: When the engine began, in the loop's time.
            earliest: When it came to know the batch; a prefill that would have been over by then is not late.
        """
        while joined := self._joining():
            new = sum(len(one.input_ids) - one.cached_tokens for one in joined)
            cached = sum(one.cached_tokens for one in joined)
            milliseconds = self._launch.prefill_ms(new)
            due += milliseconds / 1000 * self._scale
            speed = 1000 * new / milliseconds if milliseconds else 0.0
            self._log.scheduler(
                f"Prefill batch, #new-seq: {len(joined)}, #new-token: {new}, #cached-token: {cached}, "
                f"token usage: {self._usage():.2f}, #running-req: {len(self.running)}, "
                f"#queue-req: {len(self.waiting)}, #pending-token: 0, cuda graph: False, "
                f"input throughput (token/s): {speed:.2f}"
            )
            for one in joined:
                one.prefill()
            await self._deliver(joined, max(due, earliest))
            self.busy_s += milliseconds / 1000
            self.running += [one for one in joined if one.finish is None and not one.gone]
        return due

    def _joining(self) -> list[Generation]:
        """Take from the queue what fits: running requests, and the KV cache with whole answers reserved."""
        joined: list[Generation] = []
        reserved = sum(len(one.input_ids) + one.max_new_tokens for one in self.running)
        while self.waiting and len(self.running) + len(joined) < self._launch.most_running:
            one = self.waiting[0]
            reserved += len(one.input_ids) + one.max_new_tokens
            if reserved > self._launch.kv_tokens and (self.running or joined):
                break
            self.waiting.popleft()
            if one.gone:
                continue
            if one.number is not None:
                self.reach(one.number)
            one.cached_tokens = self._cache.take(one.input_ids)
            joined.append(one)
        return joined

    async def _cycle(self, due: float) -> tuple[float, bool]:
        """Run one cycle of the whole batch; returns when it ends and whether a request has ended with it."""
        batch = self.running
        milliseconds = self._launch.cycle_ms(len(batch), sum(one.held_tokens for one in batch))
        milliseconds *= self._launch.pace.factor(int(self.busy_s))
        slow, factor = self._launch.slow_requests()
        if any(one.number is not None and one.number < slow for one in batch):
            milliseconds *= factor
        before = sum(one.completed for one in batch)
        correct = sum(one.cycle() for one in batch)
        milliseconds += 1000 * self._delay_s
        self._delay_s = 0.0
        due += milliseconds / 1000 * self._scale
        await self._deliver(batch, due)
        self.busy_s += milliseconds / 1000
        self.running = [one for one in batch if one.finish is None and not one.gone]
        tokens = sum(one.completed for one in batch) - before
        self.statistics.note(len(batch), correct, tokens, milliseconds / 1000)
        if self.statistics.due:
            self._log.scheduler(self._decode_line(len(batch)))
        return due, len(self.running) < len(batch)

    def _decode_line(self, batch: int) -> str:
        setup, tick = self._launch.setup, self.statistics.tick()
        held = sum(one.held_tokens for one in self.running)
        accepted = ""
        if setup.speculative:
            rate = (tick.accept_length - 1) / max(1, setup.num_draft_tokens - 1)
            accepted = f"accept len: {tick.accept_length:.2f}, accept rate: {rate:.2f}, "
        return (
            f"Decode batch, #running-req: {batch}, #token: {held}, token usage: {self._usage():.2f}, {accepted}"
            f"cuda graph: {self._launch.graph_used(batch)}, gen throughput (token/s): {tick.throughput:.2f}, "
            f"#queue-req: {len(self.waiting)}"
        )

    def _usage(self) -> float:
        return sum(one.held_tokens for one in self.running) / max(1, self._launch.kv_tokens)

    async def _deliver(self, batch: list[Generation], due: float) -> None:
        """Write everything beforehand, wait, and hand all chunks over at the moment they are due."""
        ready = [(one, one.payload(due)) for one in batch if not one.gone]
        await self._until(due)
        if self._stopped:
            await asyncio.Event().wait()  # in a hang, what was computed never arrives
        for one, payload in ready:
            one.deliver(payload, one.finish is not None)
        if note := self.lateness.note(asyncio.get_running_loop().time() - due):
            self._log.scheduler(note)

    async def _until(self, due: float) -> None:
        """Wait; also when it is late the HTTP server gets its turn."""
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(max(0.0, due - clock() - TICK_S))
        time.sleep(max(0.0, due - clock()))  # noqa: ASYNC251 (at most a tick, or every chunk would be late by half of one)
