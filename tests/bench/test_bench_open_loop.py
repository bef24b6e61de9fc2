"""Open loops against a real HTTP server, in virtual time."""

import asyncio
from itertools import islice

import pytest
import virtual_time
from bench_server import FakeEngine, chunk, endless, open_stream, serving, until

from spectune.analysis.open_loop import flow
from spectune.bench.arrivals import Poisson, Trace
from spectune.bench.client import Sampling
from spectune.bench.level import LevelPlan
from spectune.bench.load import run_level

SAMPLING = Sampling(output_tokens=64)
QUICK = {"window_s": 0.1, "warmup_limit_s": 0.6, "time_limit_s": 1.0, "precision": -1.0, "drain_limit_s": 0.3}


def run(engine, arrivals, *, stop=None, **plan):
    async def once():
        async with serving(engine) as client:
            stop_when = None if stop is None else asyncio.ensure_future(stop(engine))
            settings = LevelPlan(arrivals, SAMPLING, **(QUICK | plan))
            return await asyncio.wait_for(run_level(client, endless(), settings, stop_when=stop_when), 30)

    return virtual_time.run(once())


async def never_ends(_engine, request, _body):
    response = await open_stream(request)
    await response.write(chunk(1))
    await asyncio.sleep(60)
    return response


@pytest.mark.parametrize("arrivals", [Poisson(40.0, 3), Trace((5.0, 5.01, 5.3, 5.4)), Trace((0.0, 1.0, 2.0), 30.0)])
def test_requests_are_due_as_scheduled_and_none_is_sent_early(arrivals):
    level = run(FakeEngine(), arrivals)
    records = sorted(level.records, key=lambda record: record.due_s)
    assert [record.due_s for record in records] == list(islice(arrivals.due(), len(records)))
    assert all(record.sent_s >= record.due_s == record.began_s for record in records)
    assert level.stop_reason == "time"


def test_requests_keep_coming_although_none_ends():
    engine = FakeEngine(answer=never_ends)

    async def twenty(engine):
        await until(lambda: engine.in_flight == 20)

    level = run(engine, Poisson(50.0), stop=twenty, warmup_limit_s=25)
    assert level.stop_reason == "stopped"
    assert engine.most_in_flight >= 20
    assert all(not record.completed for record in level.records)


def test_no_more_are_sent_than_may_be_in_flight_and_those_that_wait_count_from_when_they_were_due():
    engine = FakeEngine(cycle_s=0.01)
    level = run(engine, Poisson(200.0, most_in_flight=2))
    assert engine.most_in_flight == 2
    waits = [record.sent_s - record.due_s for record in sorted(level.records, key=lambda record: record.due_s)]
    assert waits[-1] > waits[0]
    traffic = flow(level.records, level.measured_s)
    assert traffic.late_s > 0.01
    assert any("after they were due" in note for note in traffic.notes())


def test_a_warm_up_lasts_until_what_arrived_in_its_first_half_has_ended():
    level = run(FakeEngine(cycles=20, cycle_s=0.01), Poisson(40.0), warmup_limit_s=25)
    assert level.warmup_converged
    start, _ = level.measured_s
    assert flow(level.records, level.measured_s).filled
    assert min(record.due_s for record in level.records if record.due_s <= start < record.end_s) >= start / 2


def test_an_engine_that_cannot_keep_up_is_measured_as_such():
    busy = asyncio.Semaphore(1)

    async def one_at_a_time(engine, request, body):
        async with busy:
            return await engine.stream(request, body)

    level = run(FakeEngine(answer=one_at_a_time, cycle_s=0.01), Poisson(100.0), time_limit_s=1.5)
    traffic = flow(level.records, level.measured_s)
    assert traffic.falls_behind
    assert traffic.offered_rate > 2 * traffic.achieved_rate
    assert traffic.waiting[1] > traffic.waiting[0]
    assert "does not keep up" in traffic.notes()[0]


def test_an_engine_that_freezes_is_noticed_although_requests_keep_coming():
    level = run(FakeEngine(answer=never_ends), Poisson(50.0, most_in_flight=20), hang_s=0.5, warmup_limit_s=25)
    assert level.stop_reason == "hang"
    assert len(level.records) > 20
    assert all(record.failed or not record.chunks for record in level.records)


def test_requests_that_never_find_room_are_kept_as_waiting():
    level = run(FakeEngine(answer=never_ends), Poisson(50.0, most_in_flight=2), time_limit_s=0.5)
    unsent = [record for record in level.records if not record.chunks]
    assert len(level.records) - len(unsent) == 2
    assert all(record.sent_s == record.end_s > record.due_s and not record.failed for record in unsent)


def test_a_known_speed_ends_an_open_loop():
    level = run(FakeEngine(cycle_s=0.01), Poisson(30.0), precision=0.5, time_limit_s=25, min_windows=3, min_requests=4)
    assert level.stop_reason == "precision"
