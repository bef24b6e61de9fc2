import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.change_words import beyond, change_words, changed
from spectune.analysis.comparison import LaunchSpeed, compare
from spectune.analysis.estimate import Estimate
from spectune.analysis.holding import Held
from spectune.analysis.launch_noise import LaunchNoise

NOISE = LaunchNoise(0.01, 1000.0, "known")
speeds = st.floats(1.0, 1e4)


def launches(*figures, accept=1.0):
    return [LaunchSpeed("x", Estimate.exactly(figure), accept > 1.0, accept) for figure in figures]


def change(before, after, noise=NOISE, accept=1.0, n=4):
    return compare("c1", launches(*[after] * n, accept=accept), launches(*[before] * n, accept=accept), noise)


def test_the_words_of_known_figures():
    # ±1.96·√(2·0.01²/4) in ln speed: −1.4 % to +1.4 %
    assert change_words(change(100.0, 104.0)) == "faster by 4.0 % (2.6–5.5 %)"
    assert change_words(change(100.0, 80.0)) == "slower by 20 % (19–21 %)"
    assert change_words(change(100.0, 101.0)) == "no difference shown; 1.4 % or more would have been seen"
    assert change_words(change(100.0, 80.0), than="the baseline").startswith("slower than the baseline by 20 % (")


def test_a_launch_of_which_nothing_is_known_can_tell_nothing():
    blind = compare("c1", [LaunchSpeed("x", Estimate(100.0, -math.inf, math.inf))] * 2, launches(100.0, 100.0), NOISE)
    assert change_words(blind) == "no difference shown: these launches tell too little"
    assert not changed(blind)


@given(speeds, speeds)
def test_what_is_said_forwards_is_said_backwards(before, after):
    there, back = change(before, after), change(after, before)
    assert there.judged.est == pytest.approx(1.0 / back.judged.est)
    assert there.judged.lo == pytest.approx(1.0 / back.judged.hi)
    opposite = {"faster": "slower", "slower": "faster", "no": "no"}
    assert change_words(back).split()[0] == opposite[change_words(there).split()[0]]


@given(speeds, speeds, st.floats(0.5, 2.0))
def test_what_everything_shares_is_no_change_of_its_own(before, base, factor):
    common = change(base, base * factor)
    own = beyond(change(before, before * factor), common)
    assert own.judged.est == pytest.approx(1.0)
    assert not changed(own)
    assert own.judged.hi >= change(before, before).judged.hi


def held(launch, baseline, accept=2.0, before=(150.0, 100.0)):
    return Held(
        change(before[0], launch, accept=accept),
        change(before[1], baseline),
        compare("c1", launches(*[launch] * 4, accept=accept), launches(*[baseline] * 4), NOISE),
        speculates=True,
    )


@pytest.mark.parametrize(
    ("now", "outcome", "words"),
    [
        ((150.5, 100.2), "holds", "still holds: no difference shown; 1.4 % or more would have been seen"),
        ((120.0, 80.0), "machine_changed", "machine changed: the baseline is slower by 20 %"),
        ((90.0, 100.0), "below_break_even", "2.00 tokens are accepted and 2.22 are needed"),
        ((130.0, 100.0), "launch_changed", "no longer holds: the launch is slower by 13 %"),
        ((90.0, 120.0), "below_break_even", "run the baseline instead"),  # the worst is said first
    ],
)
def test_each_outcome_in_its_words(now, outcome, words):
    one = held(*now)
    assert one.outcome == outcome
    assert words in one.words


def test_what_never_paid_and_has_not_changed_holds():
    one = held(80.0, 100.0, before=(80.0, 100.0))
    assert one.outcome == "holds"
    assert one.words.endswith("; as then, it is slower than the baseline")


def test_a_baseline_that_is_checked_tells_of_the_machine():
    same, slower = (Held(change(100.0, now), None, None, speculates=False) for now in (100.0, 90.0))
    assert (same.outcome, slower.outcome) == ("holds", "machine_changed")
    assert "which is the best baseline itself, is slower by 10 %" in slower.words


def test_break_even_and_the_outcome_are_one_statement():
    for launch in (60.0, 95.0, 105.0, 150.0):
        one = held(launch, 100.0)
        assert one.speedup is not None
        below = one.speedup.accept_length < one.speedup.break_even
        assert below == (one.speedup.speedup.est < 1.0)
        assert below or one.outcome != "below_break_even"
