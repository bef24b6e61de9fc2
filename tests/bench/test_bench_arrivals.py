from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.bench.arrivals import ClosedLoop, Poisson, Trace, first_answer

rates = st.floats(0.01, 1000)


@given(rate=rates, seed=st.integers(0, 5))
def test_poisson_arrivals_come_at_their_rate_and_are_the_same_every_time(rate, seed):
    due = list(islice(Poisson(rate, seed).due(), 2000))
    assert due == list(islice(Poisson(rate, seed).due(), 2000))
    assert all(before < after for before, after in pairwise(due))
    # Four standard deviations of a count of 2,000.
    assert 2000 / due[-1] == pytest.approx(rate, rel=4 / 2000**0.5)


def test_gaps_of_poisson_arrivals_are_exponential():
    gaps = sorted(after - before for before, after in pairwise(islice(Poisson(1.0).due(), 20_001)))
    assert sum(gaps) / len(gaps) == pytest.approx(1.0, abs=0.03)
    assert gaps[len(gaps) // 2] == pytest.approx(0.6931, abs=0.03)
    assert gaps[int(0.95 * len(gaps))] == pytest.approx(2.9957, abs=0.15)


@given(rate=rates, factor=st.floats(0.1, 10))
def test_another_rate_is_the_same_pattern_at_another_speed(rate, factor):
    slow, fast = islice(Poisson(rate).due(), 20), islice(Poisson(rate * factor).due(), 20)
    assert [time / factor for time in slow] == pytest.approx(list(fast))


recorded = st.lists(st.floats(0, 1e6), min_size=2, max_size=30).map(sorted).filter(lambda times: times[0] < times[-1])


@given(times=recorded, speed=st.floats(0.1, 100))
def test_a_trace_keeps_its_gaps_and_starts_over_after_a_mean_gap(times, speed):
    trace = Trace(tuple(times), speed)
    due = list(islice(trace.due(), 2 * len(times)))
    first, second = due[: len(times)], due[len(times) :]
    assert first[0] == 0.0
    assert [time * speed for time in first] == pytest.approx([time - times[0] for time in times], abs=1e-3)
    assert [b - a for a, b in pairwise(second)] == pytest.approx([b - a for a, b in pairwise(first)], abs=1e-3)
    assert second[0] == pytest.approx(len(times) / trace.rate)


@given(st.integers(1, 300), st.integers(2, 2000))
def test_first_answers_of_a_closed_loop_end_one_by_one(slots, output_tokens):
    firsts = [first_answer(slot, slots, output_tokens) for slot in range(slots)]
    assert firsts == sorted(firsts)
    assert (firsts[-1], min(firsts) >= 2) == (output_tokens, True)
    if output_tokens >= 2 * slots:
        gaps = [later - earlier for earlier, later in pairwise([0, *firsts])]
        assert max(gaps) - min(gaps) <= 1


def test_a_closed_loop_has_no_times_of_its_own():
    assert list(islice(ClosedLoop(3).due(), 5)) == [None] * 5
    assert not ClosedLoop(3).open
    assert Poisson(1.0).open
    assert Trace((0.0, 1.0)).open
