import itertools

import pytest

from spectune.bench.arrivals import ClosedLoop
from spectune.bench.client import Sampling
from spectune.bench.level import LevelPlan
from spectune.bench.records import RequestRecord
from spectune.bench.replay import replay
from spectune.engines.simulated.profile import load_profile
from spectune.engines.simulated.start import open_launch
from spectune.engines.simulated.virtual import ClosedLoop as Loop
from spectune.engines.simulated.virtual import VirtualEngine

PLAN = LevelPlan(ClosedLoop(2), Sampling(40), precision=0.02, time_limit_s=20.0)


def served(*, slow_requests=0, factor=1.0, requests=200, cycle_s=0.02):
    """Two slots; every request gets 40 chunks, at one pace, but for the first ones."""
    free, records = [0.0, 0.0], []
    for number in range(requests):
        now = sent = min(free)
        pace = cycle_s * (factor if number < slow_requests else 1.0)
        chunks = [(now := now + pace, tokens) for tokens in range(1, 41)]
        free[free.index(sent)] = now
        records.append(
            RequestRecord(
                str(number), "code", 20, 40, 0, sent, chunks[0][0], now, tuple(chunks), 0, 0, (), "length", None
            )
        )
    return records, min(free)


def test_an_even_level_ends_as_soon_as_it_can():
    run = replay(PLAN, *served())
    assert run.stop_reason == "precision"
    assert run.warmup_converged
    begin, end = run.measured_s
    assert end - begin == pytest.approx(PLAN.min_windows * PLAN.window_s, abs=PLAN.window_s)
    assert all(record.sent_s < end for record in run.records)


@pytest.mark.parametrize("slow", [2, 4, 6])
def test_slow_but_even_first_requests_do_not_count(slow):
    records, full_until = served(slow_requests=slow, factor=3.0)
    begin, _ = replay(PLAN, records, full_until).measured_s
    slow_until = max(record.end_s for record in records[:slow])
    assert begin >= slow_until - PLAN.window_s


def test_the_slow_first_requests_of_the_simulated_engine_do_not_count():
    profile = load_profile("llama-3.3-70b-nvlink")  # its first four requests take twice as long
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", "org/target", "--tp-size", "8"]
    _, launch, _ = open_launch(profile, argv, {})
    assert launch.slow_requests() == (4, 2.0)
    level = VirtualEngine(launch).serve(Loop(2, 120, 100, 64))
    records = level.requests()
    begin, _ = replay(PLAN, records, sorted(record.end_s for record in records)[-2]).measured_s
    assert begin >= max(record.end_s for record in records[:4]) - PLAN.window_s


def test_a_level_that_is_over_before_it_is_known_has_no_end():
    assert replay(PLAN, *served(requests=4)) is None


def test_whoever_has_seen_enough_ends_it():
    asked = itertools.count()
    run = replay(LevelPlan(ClosedLoop(2), Sampling(40), precision=-1.0), *served(), lambda highest: next(asked) > 2)
    assert run.stop_reason == "dominated"
    speeds = []
    replay(PLAN, *served(), lambda highest: bool(speeds.append(highest)))
    assert all(highest.decode_speed >= 49.0 for highest in speeds)
