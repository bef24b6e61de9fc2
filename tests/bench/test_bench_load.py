import asyncio
import math
import re
import time
from itertools import islice

import pytest
import virtual_time
from aiohttp import web
from bench_server import FakeEngine, chunk, endless, open_stream, serving, until

from spectune.bench.arrivals import ClosedLoop
from spectune.bench.client import Sampling
from spectune.bench.level import LevelPlan
from spectune.bench.load import run_level
from spectune.bench.silence import BLIND_S

SAMPLING = Sampling(output_tokens=10**6)  # some of these engines never end
# Cut short wherever a test does not look at it; a negative precision is never reached.
QUICK = {
    "window_s": 0.1,
    "warmup_limit_s": 0.4,
    "time_limit_s": 1.0,
    "min_requests": 2,
    "min_windows": 3,
    "precision": -1.0,
}


def run(engine, *, concurrency=4, arrivals=None, prompts=None, stop=None, progress=None, **plan):
    async def once():
        async with serving(engine) as client:
            stop_when = None
            if stop is not None:
                stop_when = asyncio.ensure_future(stop(engine))
            settings = LevelPlan(arrivals or ClosedLoop(concurrency), SAMPLING, **(QUICK | plan))
            return await asyncio.wait_for(
                run_level(client, prompts or endless(), settings, progress=progress, stop_when=stop_when), 30
            )

    return virtual_time.run(once())


def test_a_client_that_stood_still_while_it_measured_says_so():
    asleep = []

    def sleep_once(at):
        if at.phase == "measuring" and not asleep:
            asleep.append(at.elapsed_s)
            time.sleep(BLIND_S + 0.3)  # as if this process had been stopped

    level = run(FakeEngine(), progress=sleep_once, time_limit_s=2.0)
    assert level.blind_s > BLIND_S
    assert level.stop_reason == "time"


@pytest.mark.parametrize("concurrency", [1, 4, 16])
def test_a_level_keeps_its_concurrency_and_uses_every_prompt_once(concurrency):
    engine = FakeEngine()
    level = run(engine, concurrency=concurrency)
    assert engine.most_in_flight == concurrency
    assert len(set(engine.seen)) == len(engine.seen) == len(level.records)
    assert all(record.completed for record in level.records)
    start, end = level.measured_s
    assert 0 < start < end <= level.wall_s


def test_all_slots_are_busy_throughout_the_steady_state():
    level = run(FakeEngine(), concurrency=4)
    start, end = level.measured_s
    # Before the first and after the last quarter-cycle of turn-round, four requests overlap at any time sampled.
    busy = [
        sum(record.sent_s <= start + (end - start) * i / 50 < record.end_s for record in level.records)
        for i in range(50)
    ]
    assert sum(busy) / len(busy) > 3.5
    assert max(busy) == 4


def test_an_engine_that_is_steady_ends_by_precision():
    level = run(FakeEngine(cycle_s=0.01), precision=0.5, time_limit_s=25)
    assert level.stop_reason == "precision"


class SlowAtFirst(FakeEngine):
    """Its first requests take several times as long as any other: evenly, so that windows within them agree."""

    def __init__(self, requests):
        super().__init__(answer=SlowAtFirst.stream)
        self._slow = requests

    async def stream(self, request, body):
        slow = len(self.seen) <= self._slow
        response = await open_stream(request)
        for tokens in range(1, 21):
            await response.write(chunk(tokens, finish={"type": "length", "length": 20} if tokens == 20 else None))
            await asyncio.sleep(0.04 if slow else 0.005)
        await response.write_eof()
        return response


def test_every_slot_has_been_through_its_first_request_before_it_counts():
    level = run(SlowAtFirst(4), concurrency=4, warmup_limit_s=20)
    first = sorted(level.records, key=lambda record: record.sent_s)[:4]
    assert level.warmup_converged
    assert level.measured_s[0] >= max(record.end_s for record in first)


def test_a_slow_phase_that_outlasts_the_first_requests_is_cut_off_when_it_ends():
    level = run(SlowAtFirst(3), concurrency=1, warmup_limit_s=20, time_limit_s=4.0)
    slow = sorted(level.records, key=lambda record: record.sent_s)[:3]
    assert level.measured_s[0] >= slow[-1].end_s - 0.2  # the window that holds the change is kept or not


def test_a_precision_out_of_reach_ends_by_time():
    level = run(FakeEngine(), precision=-1.0, time_limit_s=0.5)
    assert level.stop_reason == "time"
    assert level.measured_s[1] >= 0.5


def test_too_few_requests_do_not_end_a_level_by_precision():
    level = run(FakeEngine(), precision=0.9, min_requests=10**6)
    assert level.stop_reason == "time"


def test_requests_in_flight_end_after_measuring():
    level = run(FakeEngine(cycles=40, cycle_s=0.01), time_limit_s=0.3, precision=-1.0)
    assert all(record.completed for record in level.records)
    assert max(record.end_s for record in level.records) > level.measured_s[1]


def test_requests_that_do_not_end_in_time_are_closed_and_kept():
    engine = FakeEngine(cycles=10**6, cycle_s=0.005)
    level = run(engine, time_limit_s=0.3, precision=-1.0, drain_limit_s=0.2)
    assert len(level.records) == 4
    assert {record.finish_reason for record in level.records} == {"client_abort"}
    assert all(record.chunks and not record.failed and not record.completed for record in level.records)
    assert engine.dropped == 4


def test_prompts_that_run_out_end_the_level():
    level = run(FakeEngine(), prompts=islice(endless(), 10))
    assert level.stop_reason == "prompts_exhausted"
    assert len(level.records) == 10


def test_an_engine_that_refuses_everything_is_given_up():
    async def refuse(_engine, _request, _body):
        return web.Response(status=500, text="boom")

    level = run(FakeEngine(answer=refuse), time_limit_s=25)
    assert level.stop_reason == "failures"
    assert level.measured_s is None
    assert 8 <= len(level.records) <= 12
    assert all(record.error == "HTTP 500: boom" for record in level.records)


def test_an_engine_that_answers_without_a_token_is_given_up():
    async def nothing(_engine, request, _body):
        response = await open_stream(request)
        await response.write(chunk(0, finish={"type": "stop", "matched": 2}))
        await response.write_eof()
        return response

    level = run(FakeEngine(answer=nothing), time_limit_s=25, warmup_limit_s=25)
    assert level.stop_reason == "failures"
    assert {record.error for record in level.records} == {"the server ended the answer without a token"}


def test_a_burst_of_failures_gives_an_engine_up_whatever_comes_after_it():
    async def busy_at_first(engine, request, body):
        first, *_others = body["input_ids"]
        return await engine.stream(request, body) if first == 0 else web.Response(status=503, text="busy")

    level = run(FakeEngine(answer=busy_at_first), time_limit_s=25)
    assert level.stop_reason == "failures"
    assert sum(not record.failed for record in level.records) == 1


def test_single_failures_do_not_lose_the_others():
    async def sometimes(engine, request, body):
        if body["input_ids"][0] % 5 == 0:
            response = await open_stream(request)
            await response.write(chunk(1))
            await response.write_eof()
            return response
        return await engine.stream(request, body)

    engine = FakeEngine(answer=sometimes)
    level = run(engine)
    failed = [record for record in level.records if record.failed]
    assert len(failed) == sum(ids[0] % 5 == 0 for ids in engine.seen)
    assert len(level.records) == len(engine.seen)
    assert level.stop_reason == "time"


def test_a_deadlocked_engine_is_noticed_by_its_tokens():
    async def stall(_engine, request, _body):
        response = await open_stream(request)
        await response.write(chunk(1))
        await asyncio.sleep(60)
        return response

    level = run(FakeEngine(answer=stall), hang_s=0.5, time_limit_s=25)
    assert level.stop_reason == "hang"
    assert {record.error for record in level.records} == {"no new token for 0.5 s"}


class Freezing(FakeEngine):
    """Sends chunk after chunk until it is frozen, and from then on nothing, to nobody."""

    frozen = False

    async def stream(self, request, body):
        response = await open_stream(request)
        for tokens in range(1, 10**6):
            while self.frozen:  # noqa: ASYNC110 (for ever)
                await asyncio.sleep(0.05)
            await response.write(chunk(tokens))
            await asyncio.sleep(0.005)
        return response


def freezing_in(phase, **plan):
    engine = Freezing(answer=Freezing.stream)

    def freeze(at):
        engine.frozen = engine.frozen or (at.phase == phase and at.elapsed_s > 0.6)

    return run(engine, progress=freeze, hang_s=25, hang_floor_s=0.6, **plan)


def test_an_engine_that_freezes_while_measuring_has_not_been_measured():
    level = freezing_in("measuring", time_limit_s=25, drain_limit_s=0.1)
    assert level.stop_reason == "hang"
    assert level.wall_s < 20
    assert len(level.records) == 4
    for record in level.records:
        assert re.fullmatch(r"no new token for [\d.]+ s", record.error)
        assert record.finish_reason is None
        assert record.chunks


def test_an_engine_that_freezes_while_the_last_requests_are_to_end_hangs_too():
    level = freezing_in("draining", time_limit_s=0.3, drain_limit_s=25)
    assert level.stop_reason == "hang"
    assert level.measured_s is not None
    assert all(record.failed for record in level.records)


def test_an_engine_that_falls_silent_because_it_is_dying_does_not_hang():
    async def dies(engine):
        await until(lambda: engine.frozen)
        await asyncio.sleep(1.5)

    level = freezing_in("measuring", time_limit_s=25, stop=dies)
    assert level.stop_reason == "stopped"
    assert all(record.error for record in level.records)


def test_a_pause_of_an_engine_that_lives_is_no_hang():
    class Pausing(FakeEngine):
        async def stream(self, request, body):
            self.cycle_s = 0.7 if len(self.seen) == 12 else 0.004
            return await FakeEngine.stream(self, request, body)

    level = run(Pausing(answer=Pausing.stream, cycles=3), hang_floor_s=5.0, time_limit_s=3)
    assert level.stop_reason == "time"
    assert not any(record.failed for record in level.records)


@pytest.mark.parametrize("after", [0, 5, 200])
def test_a_level_ends_at_once_when_told(after):
    async def dies(engine):
        await until(lambda: len(engine.seen) >= after)

    level = run(FakeEngine(), stop=dies, time_limit_s=25, warmup_limit_s=25, precision=-1.0)
    assert level.stop_reason == "stopped"
    assert not any(record.failed for record in level.records)
    assert len(level.records) >= after


def test_cancelling_a_level_leaves_nothing_running():
    engine = FakeEngine(cycles=10**6)

    async def once():
        async with serving(engine) as client:
            task = asyncio.create_task(run_level(client, endless(), LevelPlan(ClosedLoop(4), SAMPLING)))
            await until(lambda: engine.in_flight == 4)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: not engine.in_flight)

    virtual_time.run(once())
    assert engine.dropped == 4


def test_progress_tells_the_phases_in_order():
    seen = []
    level = run(FakeEngine(cycles=60), progress=seen.append, precision=0.5, time_limit_s=25)
    assert level.stop_reason == "precision"  # however slow the machine: a precision that is known ends it, no clock
    phases = [state.phase for state in seen]
    assert phases == sorted(phases, key=["warm-up", "measuring", "draining"].index)
    assert {"warm-up", "measuring"} <= set(phases)
    measuring = [state for state in seen if state.phase == "measuring"]
    assert measuring[-1].tokens_per_s > 0
    assert math.isfinite(measuring[-1].speed_precision)


def test_a_prompt_source_that_breaks_is_not_swallowed():
    def broken():
        yield from islice(endless(), 6)
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        run(FakeEngine(), prompts=broken())
