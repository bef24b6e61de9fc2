import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.drift import Drift, Repeat, find_drift, find_jump, surprises
from spectune.analysis.estimate import Estimate


def repeats(changes, *, groups=("base",), every=0.1, noise=0.0, seed=0):
    rng = random.Random(seed)
    return [
        Repeat(n, groups[n % len(groups)], n * every, 4.0 + n % len(groups) + change + rng.gauss(0, noise))
        for n, change in enumerate(changes)
    ]


def test_a_drift_is_found_with_its_interval():
    found = find_drift(repeats([-0.05 * n for n in range(10)], groups=("base", "eagle"), noise=0.01))
    assert found.per_hour.lo < -0.5 < found.per_hour.hi
    assert found.shown
    assert "all figures are brought to the same time" in found.words


def test_a_drift_that_is_plain_is_taken_out_whole_and_one_that_is_hardly_seen_in_part():
    plain = find_drift(repeats([-0.05 * n for n in range(10)]))
    assert plain.per_hour.est == pytest.approx(-0.5, rel=1e-3)
    hardly = find_drift(repeats([-0.004 * n for n in range(10)], noise=0.015, seed=1))
    middle = (hardly.per_hour.lo + hardly.per_hour.hi) / 2
    assert abs(hardly.per_hour.est) < abs(middle)


def test_one_late_launch_that_is_unlike_seven_others_is_no_drift():
    """Seven baselines over an hour within 1 %, and a last one 9 % above."""
    seen = [0.0, 0.01, -0.01, 0.005, -0.005, 0.01, -0.005, 0.09]
    found = find_drift(repeats(seen, every=0.12))
    assert not found.shown
    assert abs(found.per_hour.est) < 0.01


@given(st.integers(5, 14), st.integers(0, 13), st.floats(-0.5, 0.5))
def test_no_single_launch_makes_a_drift(count, where, outlier):
    steady = [0.01 * (-1) ** n for n in range(count)]
    steady[where % count] = outlier
    assert not find_drift(repeats(steady)).shown


@given(st.lists(st.floats(-0.1, 0.1), min_size=4, max_size=12))
def test_what_is_taken_out_is_inside_the_interval_and_never_more_than_the_line(changes):
    found = find_drift(repeats(changes))
    assert found.per_hour.lo <= found.per_hour.est <= found.per_hour.hi
    assert abs(found.per_hour.est) <= abs(found.per_hour.lo + found.per_hour.hi) / 2 + 1e-12


@pytest.mark.parametrize("rate", [-0.06, 0.12])
def test_a_real_drift_is_held_by_its_interval(rate):
    """Ten baselines over six hours with 1.5 % between launches."""
    held = shown = 0
    for seed in range(300):
        found = find_drift(repeats([rate * 0.6 * n for n in range(10)], every=0.6, noise=0.015, seed=seed))
        held += found.per_hour.lo <= rate <= found.per_hour.hi
        shown += found.shown
    assert shown == 300
    assert held / 300 >= 0.9


def test_no_drift_is_not_corrected():
    found = find_drift(repeats([0.0] * 8, noise=0.01))
    assert not found.shown
    assert "nothing is corrected" in found.words


@pytest.mark.parametrize(("reach", "said"), [(3.0, "cannot be told"), (0.01, "no drift is seen")])
def test_an_interval_that_holds_everything_is_not_the_absence_of_drift(reach, said):
    words = Drift(Estimate(0.0, -reach, reach), 0.05).words
    assert said in words
    assert "nothing is corrected" in words


def test_nothing_has_no_sign_of_its_own():
    words = Drift(Estimate(-0.0001, -0.01, 0.01), 2.0).words
    assert words.startswith("no drift is seen: +0.0% an hour (")


def test_too_few_repeats_say_nothing_of_drift():
    assert find_drift(repeats([0.0, 0.1, 0.2])) is None
    assert find_drift(repeats([0.0] * 4, groups=("a", "b", "c", "d"))) is None


def test_a_drift_is_seldom_shown_where_there_is_none():
    shown = sum(find_drift(repeats([0.0] * 8, noise=0.015, seed=seed)).shown for seed in range(400))
    assert shown / 400 <= 0.07


@pytest.mark.parametrize("size", [-0.077, 0.12])
def test_a_jump_is_dated_and_sized(size):
    found = find_jump(repeats([0.0] * 3 + [size] * 3, noise=0.01))
    assert (found.before, found.after) == (2, 3)
    assert found.change.lo < size < found.change.hi
    assert f"between launches 2 and 3: {math.expm1(found.change.est):+.1%}" in found.words


def test_a_jump_is_seen_in_configurations_of_different_speed():
    found = find_jump(repeats([0.0] * 4 + [-0.1] * 4, groups=("base", "eagle"), noise=0.005))
    assert (found.before, found.after) == (3, 4)


@pytest.mark.parametrize("change", [0.0, -0.14])
def test_what_was_first_launched_at_a_jump_is_not_taken_for_what_came_after_it(change):
    made = [("base", 0.0)] * 4 + [("one", 0.0), ("two", 0.0), ("new", change), ("two", -0.14), ("base", -0.14)]
    found = find_jump([Repeat(n, name, n * 0.1, 4.0 + own) for n, (name, own) in enumerate(made)])
    assert (found.before, found.after) == (5, 7)


def test_one_launch_is_no_jump():
    assert find_jump(repeats([0.0, 0.0, 0.0, -0.2])) is None
    alone = repeats([0.0, 0.0, 0.0, -0.2, 0.0])
    assert find_jump([*alone[:4], Repeat(4, "first of its configuration", 0.4, 4.0)]) is None


def test_a_steady_drift_is_no_jump():
    assert find_jump(repeats([-0.04 * n for n in range(8)], noise=0.003)) is None


def test_jumps_are_seldom_seen_where_there_are_none():
    assert sum(find_jump(repeats([0.0] * 10, noise=0.015, seed=seed)) is not None for seed in range(400)) <= 8


def test_a_launch_surprises_only_beyond_noise():
    known = repeats([0.0, 0.01, -0.01])
    assert surprises(Repeat(9, "base", 1.0, 4.0 - 0.077), known, 0.015)
    assert not surprises(Repeat(9, "base", 1.0, 4.0 - 0.04), known, 0.015)
    assert not surprises(Repeat(9, "new", 1.0, 9.0), known, 0.015)
