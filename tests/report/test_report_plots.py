"""Places on an axis, and figures in words."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.estimate import Estimate
from spectune.counts import count
from spectune.report.plots import Rows, Scale, cross, path, span
from spectune.report.wording import duration, number, percent

FIGURES = st.floats(-1e9, 1e9, allow_nan=False, allow_infinity=False, allow_subnormal=False)
SCALES = st.tuples(FIGURES, st.floats(1e-3, 1e9)).map(lambda pair: Scale(pair[0], pair[0] + pair[1]))


@given(st.lists(st.none() | FIGURES), st.lists(FIGURES, max_size=2))
def test_a_scale_holds_what_it_is_made_for(values, holding):
    scale = Scale.over(values, holding=holding)
    for value in [*values, *holding]:
        assert value is None or scale.low <= value <= scale.high


@given(SCALES, FIGURES, FIGURES)
def test_places_keep_the_order_and_stay_in_the_plot(scale, one, other):
    low, high = sorted((one, other))
    assert 0.0 <= scale.across(low) <= scale.across(high) <= 100.0
    assert scale.up(low) == pytest.approx(100.0 - scale.across(low), abs=0.01)


@given(SCALES, st.integers(3, 10))
def test_ticks_are_few_even_and_on_the_axis(scale, most):
    steps = scale.steps(most)
    assert len(steps) <= most + 1
    slack = 1e-6 * (scale.high - scale.low) + 1e-9 * abs(scale.high)
    assert all(scale.low - slack <= step <= scale.high + slack for step in steps)
    assert all(0.0 <= tick.at <= 100.0 for tick in (*scale.x_ticks(most), *scale.y_ticks(most)))


def test_ticks_are_round():
    assert Scale(0.0, 144.0).steps() == [0, 50, 100]
    assert [tick.label for tick in Scale(0.0, 1500.0).y_ticks()] == ["0", "500", "1,000", "1,500"]
    assert Scale(0.97, 1.24).steps() == [1.0, 1.05, 1.1, 1.15, 1.2]


def test_an_axis_that_must_begin_somewhere_begins_there():
    assert Scale.over([3.0, 8.0], holding=(0.0,)).low == 0.0
    assert Scale.over([], holding=()).low < 0.0 < Scale.over([]).high
    assert Scale.over([5.0]).low < 5.0 < Scale.over([5.0]).high


def test_intervals_without_an_end_are_not_drawn():
    axis = Scale(0.0, 10.0)
    assert span(axis, Estimate(5.0, -math.inf, 6.0), 50.0, "s1") == ()
    assert span(axis, Estimate.exactly(5.0), 50.0, "s1") == ()
    (only,) = cross(axis, Estimate(5.0, -math.inf, math.inf), axis, Estimate(2.0, 1.0, 20.0), "s1")
    assert (only.x1, only.x2, only.y1, only.y2) == (50.0, 50.0, 90.0, 0.0)


def test_points_are_joined_and_rows_share_the_height():
    assert len(list(path([(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)], "s1"))) == 2
    assert list(path([], "s1")) == []
    rows = Rows(4)
    assert [rows.at(index) for index in range(4)] == [17.5, 42.5, 67.5, 92.5]


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_any_figure_has_words(value):
    words = number(value)
    assert "e" not in words.replace("–", "")
    assert (words == "–") == (not math.isfinite(value))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (number(1234.5), "1,234"),
        (number(0.04567, 3), "0.0457"),
        (percent(-0.0345), "−3.5 %"),
        (duration(7.25), "7.2 s"),
        (duration(200), "3 min 20 s"),
        (duration(7500), "2 h 5 min"),
        (count(2, "launch"), "2 launches"),
    ],
)
def test_figures_as_people_read_them(words, expected):
    assert words == expected
