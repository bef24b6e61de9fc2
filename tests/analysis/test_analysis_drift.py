import math
import random

import pytest

from spectune.analysis.drift import Repeat, find_drift, find_jump, surprises


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


def test_no_drift_is_not_corrected():
    found = find_drift(repeats([0.0] * 8, noise=0.01))
    assert not found.shown
    assert "nothing is corrected" in found.words


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


def test_one_launch_is_no_jump():
    assert find_jump(repeats([0.0, 0.0, 0.0, -0.2])) is None


def test_a_steady_drift_is_no_jump():
    assert find_jump(repeats([-0.04 * n for n in range(8)], noise=0.003)) is None


def test_jumps_are_seldom_seen_where_there_are_none():
    assert sum(find_jump(repeats([0.0] * 10, noise=0.015, seed=seed)) is not None for seed in range(400)) <= 8


def test_a_launch_surprises_only_beyond_noise():
    known = repeats([0.0, 0.01, -0.01])
    assert surprises(Repeat(9, "base", 1.0, 4.0 - 0.077), known, 0.015)
    assert not surprises(Repeat(9, "base", 1.0, 4.0 - 0.04), known, 0.015)
    assert not surprises(Repeat(9, "new", 1.0, 9.0), known, 0.015)
