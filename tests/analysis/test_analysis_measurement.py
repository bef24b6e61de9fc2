import itertools
import json
import math
import random

import pytest
from analysis_records import made_record, simulated_level
from hypothesis import given, settings
from hypothesis import strategies as st

from spectune.analysis.measure import NothingMeasuredError, measure_level
from spectune.analysis.measurement import LevelMeasurement

ACCEPTANCE = {"chat": 0.5, "code": 0.8, "math": 0.65}


def expected_length(steps):
    return sum(sum(a**i for i in range(steps + 1)) for a in ACCEPTANCE.values()) / len(ACCEPTANCE)


def level(seed=1, **changes):
    settings = {"concurrency": 4, "cycle_s": 0.02, "acceptance": ACCEPTANCE, "steps": 3, "length_s": 40.0} | changes
    return simulated_level(random.Random(seed), **settings)


def test_figures_of_a_level_whose_truth_is_known():
    found = measure_level("c4", level(), (2.0, 38.0))
    truth = expected_length(3)
    assert found.accept_length.est == pytest.approx(truth, rel=0.03)
    assert found.accept_length.lo < truth < found.accept_length.hi
    assert found.cycle_ms.est == pytest.approx(20.0, rel=0.02)
    assert found.inter_chunk_ms == pytest.approx(20.0, rel=0.01)
    assert found.decode_speed.est == pytest.approx(truth / 0.02, rel=0.03)
    # Each request decodes 60 cycles after 50 ms of prefill.
    assert found.output_throughput.est == pytest.approx(4 * (60 * truth + 1) / (60 * 0.02 + 0.05), rel=0.03)
    assert found.ttft_p50_ms == pytest.approx(50.0)
    assert found.accept_length_by_class["code"].est > found.accept_length_by_class["chat"].est
    assert found.requests_by_class.keys() == found.accept_length_by_class.keys()
    assert sum(found.requests_by_context.values()) == found.n_requests
    # 50 ms of prefill in every slot's round of 1.25 s: the other three stand by in the record, but not in the model.
    assert found.decode_cycle_ms.est == pytest.approx(20.0, rel=0.02)
    assert len(found.per_position) == 3
    for name, survival in found.per_position_by_class.items():
        assert found.accept_length_by_class[name].est == pytest.approx(1.0 + sum(survival), rel=0.05)
        assert survival[0] == pytest.approx(ACCEPTANCE[name], abs=0.06)
    assert found.notes == ()


def test_cycle_is_accept_length_over_decode_speed():
    found = measure_level("c4", level(), (2.0, 38.0))
    assert found.cycle_ms.est == pytest.approx(1000 * found.accept_length.est / found.decode_speed.est)


def test_intervals_of_the_decode_speed_cover_the_truth():
    truth = expected_length(3) / 0.02
    found = [measure_level("c4", level(seed, length_s=12.0), (1.0, 11.0)).decode_speed for seed in range(100)]
    assert sum(e.lo <= truth <= e.hi for e in found) >= 88


def test_answers_that_end_inside_a_cycle_are_as_fast_as_endless_ones():
    rng, records = random.Random(2), []
    for number in range(3000):
        chunks, histogram = [(0.0, 1)], [0] * 4
        while chunks[-1][1] < 64:
            correct = next((depth for depth in range(3) if rng.random() > 0.7), 3)
            histogram[correct] += 1
            chunks.append((len(chunks) * 0.02, min(64, chunks[-1][1] + 1 + correct)))
        chunks = [(number + time, tokens) for time, tokens in chunks]
        counts = {"verifies": len(chunks) - 1, "correct": sum(i * n for i, n in enumerate(histogram))}
        records.append(made_record(chunks=tuple(chunks), histogram=tuple(histogram), sent_s=number, **counts))
    found = measure_level("c1", records, (0.0, 3000.0))
    assert found.decode_speed.est == pytest.approx((1 + 0.7 + 0.7**2 + 0.7**3) / 0.02, rel=0.004)
    assert found.cycle_ms.est == pytest.approx(20.0, rel=0.002)
    tokens, seconds = (sum(r.chunks[-1][i] - r.chunks[0][i] for r in records) for i in (1, 0))
    assert tokens / seconds < 0.985 * found.decode_speed.est


def test_without_speculation_the_accept_length_is_exactly_one():
    found = measure_level("c4", level(steps=0), (2.0, 38.0))
    assert (found.accept_length.lo, found.accept_length.hi) == (1.0, 1.0)
    assert found.per_position == ()
    assert found.cycle_ms.est == pytest.approx(20.0, rel=0.01)


def test_what_lies_outside_the_steady_state_does_not_count():
    slow_start = made_record(chunks=((0.5, 1), (9.0, 2), (10.1, 3), (10.2, 4), (10.3, 5)), verifies=4, correct=0)
    found = measure_level("c1", [slow_start], (10.0, 11.0))
    assert found.decode_speed.est == pytest.approx(10.0)


def test_failures_are_counted_and_quoted_but_give_no_acceptance():
    records = [*level(), made_record(error="HTTP 500: boom", chunks=(), verifies=0)]
    found = measure_level("c4", records, (2.0, 38.0))
    assert found.failed == 1
    assert "1 request failed; the first: HTTP 500: boom" in found.notes


def test_requests_closed_by_the_client_are_neither_failures_nor_results():
    closed = made_record(chunks=((5.0, 1), (6.0, 2)), finish_reason="client_abort")
    found = measure_level("c4", [*level(), closed], (2.0, 38.0))
    assert found.failed == 0
    assert found.n_requests == measure_level("c4", level(), (2.0, 38.0)).n_requests


def streamed(*, verifies, correct):
    """Requests that get 4 tokens every 100 ms, and what the engine counted meanwhile."""
    chunks = tuple((0.1 * i, 1 + 4 * i) for i in range(60))
    return [made_record(chunks=chunks, verifies=verifies, correct=correct)] * 3


def test_two_routes_to_the_cycle_that_disagree_are_reported():
    found = measure_level("c1", streamed(verifies=59, correct=59), (0.0, 6.0))
    assert found.cycle_ms.est == pytest.approx(50.0)
    assert any("two routes" in note and "100.00 ms" in note for note in found.notes)


def test_cycles_that_share_a_chunk_are_no_contradiction():
    (note,) = measure_level("c1", streamed(verifies=118, correct=118), (0.0, 6.0)).notes
    assert "sends 2.00 cycles in a chunk" in note
    assert measure_level("c1", streamed(verifies=59, correct=177), (0.0, 6.0)).notes == ()


def test_the_decode_cycle_leaves_out_standstills_while_others_are_prefilled():
    """Two requests stream every 20 ms, and stand still for 200 ms whenever another one's prompt is prefilled."""
    stalls = [(0.2 + 0.5 * i, 0.4 + 0.5 * i) for i in range(10)]
    chunks, now, tokens = [(0.0, 1)], 0.0, 1
    while now < 5.0:
        now = next((end for start, end in stalls if start <= now + 0.019 < end), now + 0.02)
        tokens += 2
        chunks.append((now, tokens))
    long = made_record(chunks=tuple(chunks), verifies=len(chunks) - 1, correct=len(chunks) - 1)
    others = [made_record(sent_s=start, chunks=((end, 1),)) for start, end in stalls]
    found = measure_level("c3", [long, long, *others], (0.0, 5.0))
    assert found.decode_cycle_ms.est == pytest.approx(20.0, rel=0.01)
    assert found.cycle_ms.est > 25.0
    alone = measure_level("c2", [long, long], (0.0, 5.0))
    assert alone.decode_cycle_ms.est == pytest.approx(alone.cycle_ms.est)


def test_where_somebody_always_waits_there_is_no_decode_cycle():
    waiting = made_record(sent_s=0.0, chunks=((41.0, 1),))
    assert measure_level("c5", [*level(), waiting], (2.0, 38.0)).decode_cycle_ms is None


def test_a_busy_client_and_cached_prompts_are_reported():
    cached = [made_record(chunks=((0.1, 1), (0.2, 2), (0.3, 3)), prompt_tokens=20, cached_tokens=19)] * 3
    notes = measure_level("c1", cached, (0.0, 1.0), client_cpu=0.9).notes
    assert any("prefix cache" in note for note in notes)
    assert any("90% of a core" in note for note in notes)


def test_json_round_trip_keeps_everything():
    found = measure_level("c4", level(), (2.0, 38.0), graph_used=True, client_cpu=0.2)
    assert LevelMeasurement.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_json_has_the_keys_other_programs_read():
    data = measure_level("c1", [made_record()], (0.0, 1.0)).to_json()
    wanted = {"level", "n_requests", "failed", "accept_length", "per_position", "cycle_ms", "decode_speed"}
    assert wanted | {"output_throughput", "ttft_p95_ms", "graph_used"} <= set(data)
    assert data["decode_speed"] == [pytest.approx(20.0), None, None]
    assert math.isinf(LevelMeasurement.from_json(data).decode_speed.hi)


@pytest.mark.parametrize("records", [[], [made_record(chunks=((1.5, 1), (1.6, 8)))], [made_record(error="lost")]])
def test_a_level_without_a_decoding_request_says_so(records):
    with pytest.raises(NothingMeasuredError, match="no request of level c1 was decoding"):
        measure_level("c1", records, (0.0, 1.0))


@pytest.mark.parametrize(
    ("chunks", "histogram"), [(((0.5, 8),), ()), (((0.5, 1), (0.6, 3)), (0, 0, 1, 0))], ids=["one chunk", "one cycle"]
)
def test_answers_too_short_to_measure_say_so_and_what_helps(chunks, histogram):
    record = made_record(chunks=chunks, histogram=histogram)
    said = rf"2 answers of level c1 .* with {chunks[-1][1]} tokens on average.* longer answers \(output_tokens\)"
    with pytest.raises(NothingMeasuredError, match=said):
        measure_level("c1", [record] * 2, (0.0, 1.0))


def test_a_throughput_that_goes_on_rising_is_said_to():
    times = [10.0 * (index / 600) ** 0.8 for index in range(1, 601)]
    steady = [index / 60 for index in range(1, 601)]
    for chunks, rises in ((times, True), (steady, False)):
        record = made_record(chunks=tuple((time, 2 * index) for index, time in enumerate(chunks, 1)))
        notes = measure_level("c1", [record], (0.0, 10.0)).notes
        assert any("the throughput rose by" in note for note in notes) == rises


chunk_gaps = st.lists(st.tuples(st.floats(0.0, 0.4), st.integers(1, 6)), min_size=2, max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    requests=st.lists(st.tuples(st.floats(0.0, 1.0), chunk_gaps, st.sampled_from(["a", "b"])), min_size=1, max_size=6),
    speculates=st.booleans(),
)
def test_no_interval_holds_what_cannot_be(requests, speculates):
    records = []
    for sent_s, gaps, prompt_class in requests:
        times = itertools.accumulate((gap for gap, _ in gaps), initial=sent_s)
        tokens = itertools.accumulate((new for _, new in gaps), initial=1)
        chunks, cycles = tuple(zip(times, tokens, strict=True)), len(gaps)
        correct = (chunks[-1][1] - 1 - cycles) * speculates
        records.append(
            made_record(
                prompt_class=prompt_class, chunks=chunks, sent_s=sent_s, verifies=cycles * speculates, correct=correct
            )
        )
    try:
        level = measure_level("c2", records, (0.5, 2.0))
    except NothingMeasuredError:
        return
    known = [level.accept_length, *level.accept_length_by_class.values(), *level.accept_length_by_context.values()]
    assert all(figure.lo >= 1.0 or math.isinf(figure.lo) for figure in known)
    for figure in (*known, level.cycle_ms, level.decode_cycle_ms, level.decode_speed, level.output_throughput):
        assert figure is None or (figure.lo <= figure.est <= figure.hi and (figure.lo >= 0 or math.isinf(figure.lo)))
    assert LevelMeasurement.from_json(level.to_json()) == level


def test_a_level_that_never_warmed_up_says_what_its_requests_died_of():
    with pytest.raises(NothingMeasuredError, match="warm-up; the first: boom"):
        measure_level("c1", [made_record(error="boom")], None)
