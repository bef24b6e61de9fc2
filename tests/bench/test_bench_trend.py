import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.bench.arrivals import ClosedLoop
from spectune.bench.client import Sampling
from spectune.bench.course import Course
from spectune.bench.level import LevelPlan
from spectune.bench.precision import relative_half_width, trend
from spectune.bench.records import RequestRecord


@given(first=st.floats(1.0, 1e4), change=st.floats(-0.5, 2.0), count=st.integers(4, 20))
def test_a_line_is_found_as_it_is(first, change, count):
    line = [first * (1 + change * index / (count - 1)) for index in range(count)]
    mean = first * (1 + change / 2)
    assert trend(line) == pytest.approx(first * change / mean, abs=1e-6)


def test_chance_is_no_trend():
    rng = random.Random(1)
    found = [trend([rng.gauss(100.0, 5.0) for _ in range(8)]) for _ in range(1000)]
    assert sum(change != 0.0 for change in found) < 12


@pytest.mark.parametrize("samples", [[], [1.0], [1.0, 2.0, 3.0], [0.0] * 8, [7.0] * 8])
def test_where_nothing_can_be_seen_there_is_no_trend(samples):
    assert trend(samples) == 0.0


@pytest.mark.parametrize(("per_s", "reason"), [(0.0, "precision"), (0.008, None), (-0.008, None)])
def test_windows_that_agree_well_enough_but_rise_or_fall_are_not_known(per_s, reason):
    plan = LevelPlan(ClosedLoop(1), Sampling(40))
    times = np.arange(0.0, 6.0, 0.0002)
    speed = np.round(100 * (1 + per_s * times)).astype(np.int64)
    course = Course(plan)
    course.meter.add_all(times, speed)
    course.begin(1.0)
    one = RequestRecord("p", "a", 9, 9, 0, 0.0, 1.0, 4.0, ((1.0, 1), (4.0, 9)), 0, 0, (), "length", None)
    assert course.known(5.5, [one] * 8) == reason
    assert relative_half_width(course.meter.batches(1.0, 5.5, plan.window_s)) < plan.precision
