"""One level: requests arrive by its rule until its figures are known well enough."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

from spectune.bench.arrivals import first_answer
from spectune.bench.client import GenerateClient
from spectune.bench.course import TICK_S, Course, GiveUp, been_through
from spectune.bench.exchange import Exchange
from spectune.bench.level import LevelPlan, LevelProgress, LevelRun, StopReason
from spectune.bench.prompts import TokenizedPrompt
from spectune.bench.records import RequestRecord
from spectune.bench.silence import Silence

# How long an engine may need to end once one of its processes has: SGLang takes 6 s over that, and is silent meanwhile.
_OF_THE_DYING: Mapping[StopReason, float] = MappingProxyType({"hang": 10.0, "failures": 1.0})


async def run_level(
    client: GenerateClient,
    prompts: Iterator[TokenizedPrompt],
    plan: LevelPlan,
    *,
    progress: Callable[[LevelProgress], None] | None = None,
    stop_when: asyncio.Future[Any] | None = None,
    give_up: GiveUp | None = None,
) -> LevelRun:
    """Let requests arrive as planned, warm up, measure, and let the last ones end.

    Args:
        client: Connected to a server that is ready.
        prompts: Fresh prompts; asking for one must not block.
        plan: How to measure.
        progress: Called ten times a second.
        stop_when: Once done (the engine died), the level ends at once with what it has.
        give_up: Asked while measuring; once it agrees, the level ends as if it were known.
    """
    return await _Level(client, prompts, plan, progress, stop_when, give_up).run()


class _Level:
    """The state of one level while it runs."""

    def __init__(
        self,
        client: GenerateClient,
        prompts: Iterator[TokenizedPrompt],
        plan: LevelPlan,
        progress: Callable[[LevelProgress], None] | None,
        stop_when: asyncio.Future[Any] | None,
        give_up: GiveUp | None,
    ) -> None:
        self._client, self._prompts, self._plan = client, prompts, plan
        self._progress, self._stop_when = progress, stop_when
        self._origin = time.monotonic()
        self._course = Course(plan, give_up)
        self._meter = self._course.meter
        self._records: list[RequestRecord] = []
        self._open: set[Exchange] = set()  # sent and not ended
        self._failed = self._failed_in_a_row = 0
        self._first: list[Exchange] = []  # one for every slot
        self._exhausted = self._converged = False
        self._room = asyncio.Semaphore(plan.arrivals.most_in_flight)
        self._requests: dict[asyncio.Task[None], Exchange] = {}
        self._silence = Silence(plan.hang_s, plan.hang_s)  # a warm-up compiles: only the longest silence counts

    async def run(self) -> LevelRun:
        self._sender = asyncio.create_task(self._send())
        try:
            reason = await self._watch(self._warm)
            measured, cpu = None, 0.0
            if reason is None:
                began, cpu_before = self._now(), time.process_time()
                self._course.begin(began)
                self._silence = Silence(self._plan.hang_floor_s, self._plan.hang_s, began)
                reason = await self._watch(self._known)
                measured = (self._course.began_s, self._now())
                cpu = (time.process_time() - cpu_before) / max(measured[1] - began, TICK_S)
            assert reason is not None, "measuring ends for a reason"
            self._sender.cancel()
            if reason not in {"hang", "stopped"} and await self._drain() == "hang":
                reason = "hang"
            if reason in _OF_THE_DYING and await self._dies(_OF_THE_DYING[reason]):
                reason = "stopped"
        finally:
            # A request notes its record while it is cancelled, so nothing that was sent is lost.
            tasks = [self._sender, *self._requests]
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome
        return LevelRun(
            tuple(self._records), measured, reason, self._converged, cpu, self._now(), self._silence.blind_s
        )  # fmt: skip

    async def _send(self) -> None:
        """Let requests arrive: when they are due, or as soon as there is room."""
        for due_s in self._plan.arrivals.due():
            await (self._room.acquire() if due_s is None else asyncio.sleep(due_s - self._now()))
            if self._failed_in_a_row >= self._plan.most_failures:
                return
            prompt = next(self._prompts, None)
            if prompt is None:
                self._exhausted = True
                return
            first = len(self._first) < self._plan.arrivals.most_in_flight
            exchange = Exchange(self._shortened(prompt) if first else prompt, self._origin, due_s)
            if first:
                self._first.append(exchange)
            request = asyncio.create_task(self._request(exchange))
            self._requests[request] = exchange
            request.add_done_callback(self._ended)

    def _shortened(self, prompt: TokenizedPrompt) -> TokenizedPrompt:
        """Let the next slot of a closed loop begin with a part of its answer."""
        arrivals = self._plan.arrivals
        if arrivals.open:
            return prompt
        whole = prompt.prompt.output_tokens or self._plan.sampling.output_tokens
        part = first_answer(len(self._first), arrivals.most_in_flight, whole)
        return dataclasses.replace(prompt, prompt=dataclasses.replace(prompt.prompt, output_tokens=part))

    async def _request(self, exchange: Exchange) -> None:
        if exchange.due_s is not None:
            await self._room.acquire()  # those that find none wait here, and their waiting counts
        self._open.add(exchange)
        try:
            await self._client.generate(exchange, self._plan.sampling, on_tokens=self._meter.add)
        finally:
            self._open.discard(exchange)
            self._room.release()

    def _ended(self, request: asyncio.Task[None]) -> None:
        exchange = self._requests[request]
        exchange.end()
        self._note(exchange.record())
        if request.cancelled() or request.exception() is None:
            del self._requests[request]
        else:  # a fault of this client: the level ends, and `run` raises it
            self._sender.cancel()

    def _note(self, record: RequestRecord) -> None:
        self._records.append(record)
        self._failed += record.failed
        self._failed_in_a_row = self._failed_in_a_row + 1 if record.failed else 0

    async def _watch(self, done: Callable[[], StopReason | Literal["warm"] | None]) -> StopReason | None:
        """Look ten times a second; None once the warm-up is over, otherwise why the level ends."""
        while True:
            if self._stop_when is not None and self._stop_when.done():
                return "stopped"
            trouble = self._trouble()
            if trouble is not None:
                return trouble
            verdict = done()
            if verdict is not None:
                return None if verdict == "warm" else verdict
            if self._stop_when is None:
                await asyncio.sleep(TICK_S)
            else:
                await asyncio.wait([self._stop_when], timeout=TICK_S)

    def _trouble(self) -> StopReason | None:
        if self._failed_in_a_row >= self._plan.most_failures:
            return "failures"
        if self._exhausted:
            return "prompts_exhausted"
        if self._sender.done():  # after too many failures, though an answer may have come well since
            return "failures"
        return "hang" if self._hangs() else None

    def _hangs(self) -> bool:
        """Whether the engine has fallen silent for too long; what is in flight has failed then."""
        patience = self._silence.too_long(self._now(), self._meter.last_s, self._open, self._records)
        if patience is None:
            return False
        for exchange in self._open:
            exchange.fail(f"no new token for {patience:.3g} s")
        return True

    def _warm(self) -> Literal["warm"] | None:
        now, plan = self._now(), self._plan
        self._report("warm-up", 0.0, float("inf"), float("inf"))
        if self._meter.tokens and (self._filled(now) if plan.arrivals.open else self._steady(now)):
            self._converged = True
            return "warm"
        # An engine that has not given a token yet is not warm, however long it takes: `hang_s` bounds that.
        return "warm" if self._meter.tokens and now >= plan.warmup_limit_s else None

    def _steady(self, now: float) -> bool:
        under_way = [exchange for exchange in self._first if not exchange.ended]
        ended, slots = len(self._first) - len(under_way), self._plan.arrivals.most_in_flight
        return been_through(under_way, ended, slots) and self._course.steady(now)

    def _filled(self, now: float) -> bool:
        oldest = min((exchange.began_s for exchange in self._requests.values()), default=now)
        return now >= 2 * self._plan.window_s and len(self._records) > self._failed and oldest >= now / 2

    def _known(self) -> StopReason | None:
        reason = self._course.known(self._now(), self._records)
        self._report("measuring", self._course.began_s, self._course.speed, self._course.acceptance)
        return reason

    async def _dies(self, within_s: float) -> bool:
        """Whether what looked like a trouble was the engine's end."""
        if self._stop_when is None:
            return False
        await asyncio.wait([self._stop_when], timeout=within_s)
        return self._stop_when.done()

    async def _drain(self) -> Literal["hang"] | None:
        """Let requests in flight end: their counters belong to the accept length, else short answers would win."""
        deadline = self._now() + self._plan.drain_limit_s
        while self._requests and self._now() < deadline and not (self._stop_when and self._stop_when.done()):
            self._report("draining", self._course.began_s, float("inf"), float("inf"))
            running: list[asyncio.Future[Any]] = list(self._requests)
            if self._stop_when is not None:
                running.append(self._stop_when)
            await asyncio.wait(running, timeout=TICK_S, return_when=asyncio.FIRST_COMPLETED)
            if self._hangs():
                return "hang"
        return None

    def _report(
        self, phase: Literal["warm-up", "measuring", "draining"], since: float, speed: float, acceptance: float
    ) -> None:
        if self._progress is not None:
            now = self._now()
            rate = self._meter.rate(since, now)
            done = len(self._records) - self._failed
            self._progress(LevelProgress(phase, now, done, self._failed, rate, speed, acceptance))

    def _now(self) -> float:
        return time.monotonic() - self._origin
