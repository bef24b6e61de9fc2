import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.bench.meter import TokenMeter, acceptance_precision
from spectune.bench.precision import relative_half_width
from spectune.bench.records import RequestRecord

arrivals = st.lists(st.tuples(st.floats(0, 20), st.integers(1, 9)), min_size=1, max_size=200)


def regular(period_s, length_s, tokens=2, start_s=0.0):
    meter = TokenMeter()
    for index in range(int(length_s / period_s)):
        meter.add(start_s + (index + 0.5) * period_s, tokens)
    return meter


def test_rate_of_a_regular_stream():
    assert regular(0.01, 10).rate(1.0, 9.0) == pytest.approx(200.0)
    assert regular(0.01, 10).rate(5.01, 5.04) == 0.0


@given(arrivals=arrivals)
def test_no_token_is_lost_or_counted_twice(arrivals):
    meter = TokenMeter()
    for time_s, tokens in arrivals:
        meter.add(time_s, tokens)
    assert meter.tokens == sum(tokens for _, tokens in arrivals)
    assert meter.rate(0.0, 20.05) * 20.05 == pytest.approx(meter.tokens)
    assert meter.last_s == max(time_s for time_s, _ in arrivals)


@pytest.mark.parametrize(("length_s", "count"), [(0.4, 0), (0.5, 1), (3.0, 6), (60.0, 20)])
def test_batches_are_equally_long_and_at_most_twenty(length_s, count):
    batches = regular(0.01, 100).batches(1.0, 1.0 + length_s, 0.5)
    assert batches == pytest.approx([200.0] * count)


def test_precision_of_a_regular_stream_is_perfect_and_of_an_irregular_one_is_not():
    assert relative_half_width(regular(0.01, 10).batches(0, 10, 0.5)) == pytest.approx(0.0, abs=1e-9)
    assert relative_half_width([100.0, 200.0, 50.0, 120.0]) > 0.3


def test_an_engine_that_gets_faster_is_not_steady_until_it_no_longer_does():
    meter = TokenMeter()
    now, period = 0.0, 0.2
    while now < 4.0:
        meter.add(now, 1)
        now, period = now + period, max(period * 0.9, 0.01)
    assert not meter.steady(1.0, 0.5, 0.05)
    assert meter.steady(4.0, 0.5, 0.05)
    assert not TokenMeter().steady(4.0, 0.5, 0.05)


def test_a_batch_more_or_less_is_no_difference_but_too_few_of_them_say_nothing():
    slow = regular(0.07, 10, start_s=0.03)  # 7 or 8 chunks in half a second: windows of a second hold 14 or 15
    assert slow.steady(4.0, 0.5, 0.05)
    assert not slow.steady(1.9, 0.5, 0.05)
    batches = TokenMeter()
    for index in range(100):
        for _ in range(8):
            batches.add(0.01 + 0.03 * index, 2)
    assert batches.steady(2.0, 0.5, 0.0, in_flight=8)


def stepped(slow_s, factor, length_s=10.0):
    meter, now = TokenMeter(), 0.0
    while now < length_s:
        meter.add(now, 1)
        now += 0.02 * (factor if now < slow_s else 1.0)
    return meter


@pytest.mark.parametrize("slow_s", [0.9, 2.0, 3.3])
def test_a_slow_but_even_beginning_is_cut_off_once_it_is_over(slow_s):
    meter = stepped(slow_s, factor=3.0)
    assert meter.settled_s(0.0, slow_s, 0.5, 0.05) == 0.0
    settled = meter.settled_s(0.0, 8.0, 0.5, 0.05)
    assert slow_s <= settled <= slow_s + 0.5 + 1e-9


@given(gaps=st.lists(st.floats(0.015, 0.025), min_size=400, max_size=600))
def test_an_even_course_is_not_cut(gaps):
    meter, now = TokenMeter(), 0.0
    for gap in gaps:
        meter.add(now, 1)
        now += gap
    settled = meter.settled_s(0.0, now, 0.5, 0.05)
    if max(gaps) < 1.02 * min(gaps):
        assert settled == 0.0
    assert 0.0 <= settled <= now / 2 + 0.5


def test_easy_prompts_do_not_look_like_a_warm_up():
    meter = TokenMeter()
    for index in range(200):
        meter.add(0.005 + 0.01 * index, 5 if index < 100 else 1)
    assert meter.steady(2.0, 0.5, 0.05)


def record(verifies, correct, prompt_class="code", error=None):
    return RequestRecord("p", prompt_class, 3, 9, 0, 0.0, 0.1, 1.0, (), verifies, correct, (), "length", error)


def test_acceptance_is_exact_without_speculation_and_unknown_from_one_request():
    assert acceptance_precision([]) == 0.0
    assert acceptance_precision([record(0, 0)] * 3) == 0.0
    assert acceptance_precision([record(10, 20)]) == float("inf")
    assert acceptance_precision([record(10, 20), record(10, 30), record(10, 0, error="lost")]) > 0.1
    fixed = [record(10, 20), record(10, 60, "chat")] * 4
    assert acceptance_precision(fixed) == pytest.approx(0.0)
