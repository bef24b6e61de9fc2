import dataclasses

import pytest
from analysis_records import made_record

from spectune.analysis.measure import measure_level
from spectune.analysis.open_loop import flow


def due(due_s, latency_s, *, late_s=0.0, **more):
    first = due_s + latency_s / 2
    chunks = ((first, 1), (first + latency_s / 4, 3), (due_s + latency_s, 6))
    return dataclasses.replace(made_record(sent_s=due_s + late_s, chunks=chunks, **more), due_s=due_s)


def test_a_closed_loop_has_no_flow():
    assert flow([made_record()], (0.0, 1.0)) is None


def test_an_engine_that_keeps_up():
    traffic = flow([due(0.1 * i, 0.45) for i in range(250)], (10.0, 20.0))
    assert traffic.offered_rate == traffic.achieved_rate == 10.0
    assert traffic.waiting == (5, 5)
    assert traffic.filled
    assert not traffic.falls_behind
    assert traffic.notes() == []


def test_an_engine_that_falls_behind_is_said_to():
    records = [due(0.1 * i, 0.5 + 0.1 * i) for i in range(200)]
    traffic = flow(records, (10.0, 20.0))
    assert (traffic.arrived, traffic.ended) == (100, 50)
    assert traffic.falls_behind
    assert "10 requests/s arrive and 5 end" in traffic.notes()[0]


def test_an_engine_that_is_still_filling_up_is_said_to():
    traffic = flow([due(0.1 * i, 8.0) for i in range(150)], (10.0, 15.0))
    assert not traffic.filled
    assert "still filling up" in traffic.notes()[0]


def test_latency_counts_from_when_a_request_was_due():
    prompt = measure_level("r10", [due(0.1 * i, 0.5) for i in range(200)], (10.0, 20.0))
    late = measure_level("r10", [due(0.1 * i, 0.5, late_s=0.2) for i in range(200)], (10.0, 20.0))
    assert prompt.ttft_p50_ms == late.ttft_p50_ms == pytest.approx(250.0)
    assert (late.offered_rate, late.achieved_rate) == (10.0, 10.0)
    assert any("200 ms after they were due" in note for note in late.notes)


def test_a_request_closed_before_its_first_token_has_waited_all_the_same():
    answered = [due(0.1 * i, 0.5) for i in range(100)]
    hungry = [
        dataclasses.replace(
            made_record(chunks=(), sent_s=0.1 * i, finish_reason="client_abort"), due_s=0.1 * i, end_s=0.1 * i + 9.0
        )
        for i in range(100)
    ]
    assert measure_level("r20", answered + hungry, (2.0, 9.0)).ttft_p95_ms == pytest.approx(9000.0)


def test_a_prefix_that_is_shared_on_purpose_is_not_reported_as_cached():
    records = [due(0.1 * i, 0.5, prompt_tokens=20, cached_tokens=18) for i in range(200)]
    assert any("prefix cache" in note for note in measure_level("r10", records, (10.0, 20.0)).notes)
    assert not any("prefix cache" in n for n in measure_level("r10", records, (10.0, 20.0), shares_prefix=True).notes)
