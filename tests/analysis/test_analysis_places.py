"""How much faster one place is than another."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.places import PRIOR_SD, Shift, apart, shift, shrunk

logs = st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=4)
places = st.lists(st.sampled_from("abc"), min_size=1, max_size=8)


@given(st.lists(logs, min_size=1, max_size=4), st.floats(-0.5, 0.5))
def test_a_difference_of_all_launches_is_found_whatever_the_candidates_do(groups: list[list[float]], by: float) -> None:
    found = shift([(group, [value + by for value in group]) for group in groups])
    assert found.mean == pytest.approx(by, abs=1e-9)
    assert found.weight == pytest.approx(sum(len(group) / 2 for group in groups))


def test_candidates_of_one_place_alone_say_nothing() -> None:
    assert shift([([1.0], []), ([], [2.0])]) == Shift(0.0, 0.0)
    assert shrunk(Shift(0.0, 0.0), 1e-4).variance == pytest.approx(PRIOR_SD**2)


@given(st.floats(-0.5, 0.5), st.floats(0.5, 50.0), st.floats(1e-5, 1e-2))
def test_what_is_believed_lies_between_none_and_what_is_seen(mean: float, weight: float, variance: float) -> None:
    found = shrunk(Shift(mean, weight), variance)
    assert 0.0 <= abs(found.log) <= abs(mean)
    assert found.variance < min(PRIOR_SD**2, variance / weight)


def test_known_numbers() -> None:
    # One launch each, noise 2 %: variance of the difference 0.0008, of the prior 0.0025.
    found = shrunk(shift([([0.0], [-0.1])]), 0.0004)
    assert found.log == pytest.approx(-0.1 * 0.0025 / 0.0033)
    assert found.variance == pytest.approx(1.0 / (1 / 0.0008 + 1 / 0.0025))
    assert found.speed.est == pytest.approx(math.exp(found.log))


@given(places, st.integers(1, 3))
def test_equal_shares_leave_nothing_between_places(one: list[str], times: int) -> None:
    assert apart(one, one * times, {"a": 1.0, "b": 2.0, "c": 3.0}) == pytest.approx(0.0)


@given(places, places)
def test_shares_count_either_way_and_at_most_in_full(one: list[str], other: list[str]) -> None:
    variances = {"b": 1.0, "c": 1.0}
    assert apart(one, other, variances) == pytest.approx(apart(other, one, variances))
    assert 0.0 <= apart(one, other, variances) <= 2.0
    assert apart(["a"], ["b"], variances) == 1.0
