import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_samples import a_profile, a_setup

from spectune.engines.simulated.forced_acceptance import forced_survival
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.errors import SpectuneError


def forced(length, depth=4, algorithm="EAGLE3", **env):
    return forced_survival(algorithm, depth, {"SGLANG_SIMULATE_ACC_LEN": str(length), **env})


@given(st.floats(0.01, 20.0), st.integers(1, 15))
def test_the_mean_is_the_length_within_one_and_the_bound(length, depth):
    survival = forced(length, depth)
    assert len(survival) == depth
    assert list(survival) == sorted(survival, reverse=True)
    assert 1.0 + sum(survival) == pytest.approx(max(1.0, min(depth + 1.0, length)))
    assert sum(0.0 < share < 1.0 for share in survival) <= 1  # one whole number or the next


@given(st.floats(0.5, 8.0))
def test_the_other_method_rounds_a_normal_number(length):
    survival = forced(length, 6, SGLANG_SIMULATE_ACC_METHOD="multinomial")
    assert list(survival) == sorted(survival, reverse=True)
    assert all(0.0 <= share <= 1.0 for share in survival)
    if 3.0 <= length <= 5.0:
        assert 1.0 + sum(survival) == pytest.approx(length, abs=0.2)


@pytest.mark.parametrize("text", ["-1", "0", "-0.5", "nan", "inf"])
def test_nothing_is_forced_without_a_length_above_zero(text):
    assert forced(text) is None
    assert forced_survival("EAGLE3", 4, {}) is None


def test_algorithms_that_do_not_look_at_it_are_left_alone():
    assert forced(3.0, algorithm="NGRAM") is None
    assert forced(3.0, algorithm=None) is None


def test_what_sglang_dies_of_is_refused():
    with pytest.raises(SpectuneError, match="SGLANG_SIMULATE_ACC_LEN must be a number, but got 'many'"):
        forced("many")
    with pytest.raises(SpectuneError, match="must be match-expected or multinomial, but got 'best'"):
        forced(2.0, SGLANG_SIMULATE_ACC_METHOD="best")


def test_a_launch_accepts_what_it_is_told_whatever_its_drafter():
    for steps, topk, tokens in ((4, 1, 5), (4, 2, 9)):
        told = a_setup(steps, topk, tokens, env={"SGLANG_SIMULATE_ACC_LEN": "2.5"})
        plain, forced = (SimulatedLaunch(a_profile(), setup) for setup in (a_setup(steps, topk, tokens), told))
        assert forced.accept_length("code", 100.0) == pytest.approx(2.5)
        assert forced.accept_length("builtin:mixed", 100.0) == pytest.approx(2.5)
        assert forced.cycle_ms(4, 400.0) == plain.cycle_ms(4, 400.0)
        assert plain.accept_length("code", 100.0) != pytest.approx(2.5)
