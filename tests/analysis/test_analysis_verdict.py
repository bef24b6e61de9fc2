import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.estimate import Estimate
from spectune.analysis.launch_noise import launch_noise
from spectune.analysis.verdict import LaunchSpeed, decide


def launch(name, speed, steps=0, *, level="c1", accept=1.0, topk=1, width=0.002, tokens=None):
    interval = Estimate(speed, speed * (1 - width), speed * (1 + width))
    return LaunchSpeed(name, level, interval, accept, steps, topk, tokens or steps + 1)


def test_a_clear_winner_is_speculation_with_its_arithmetic():
    verdict = decide(
        ["c1"], [launch("base", 80), launch("fast", 120, 3, accept=3.0), launch("slow", 70, 6, accept=2.0)]
    )
    level = verdict.levels[0]
    assert verdict.decision == "speculation"
    assert level.recommended == "fast"
    assert level.comparisons[0].speedup.est == pytest.approx(1.5)
    assert level.comparisons[0].break_even == pytest.approx(2.0)
    assert level.comparisons[1].break_even == pytest.approx(2.0 / (70 / 80))
    assert "speculation pays" in verdict.words[0]
    assert "assumed: nothing was launched twice" in verdict.words[-1]


def test_a_clear_loser_is_no_speculation():
    verdict = decide(["c1"], [launch("base", 82), launch("eagle", 60, 2, accept=2.0)])
    assert verdict.decision == "no_speculation"
    assert verdict.levels[0].recommended == "base"


def test_the_best_baseline_counts_not_the_first():
    verdict = decide(["c1"], [launch("plain", 60), launch("tuned", 82), launch("eagle", 70, 2, accept=2.0)])
    assert verdict.levels[0].comparisons[0].baseline_id == "tuned"
    assert verdict.decision == "no_speculation"


def test_a_small_gain_from_one_pair_is_undecided_and_says_what_it_could_see():
    verdict = decide(["c1"], [launch("base", 100), launch("eagle", 102, 2, accept=2.0)])
    assert verdict.decision == "undecided"
    assert verdict.levels[0].recommended == "base"
    assert 0.03 < verdict.detectable_effect < 0.10


def test_repeats_decide_what_one_pair_could_not():
    launches = [launch("base", 100 + d) for d in (-0.4, 0.1, 0.3) * 4]
    launches += [launch("eagle", 102 + d, 2, accept=2.0) for d in (-0.3, 0.2, 0.1) * 4]
    verdict = decide(["c1"], launches)
    assert verdict.decision == "speculation"
    assert verdict.detectable_effect < 0.02
    assert "24 repeated measurements" in verdict.words[-1]


def test_many_equal_repeats_are_a_tie_and_a_tie_is_the_simpler_engine():
    launches = [launch("base", 100 + d) for d in (-0.2, 0.2) * 6]
    launches += [launch("eagle", 100 + d, 2, accept=2.0) for d in (-0.2, 0.2) * 6]
    verdict = decide(["c1"], launches)
    assert verdict.decision == "tie"
    assert verdict.levels[0].recommended == "base"


def test_among_candidates_as_fast_as_each_other_the_simplest_is_recommended():
    launches = [
        launch("base", 80),
        launch("deep", 120.5, 6, accept=4.0),
        launch("wide", 120.4, 3, accept=3.0, topk=4, tokens=12),
        launch("plain", 120.0, 3, accept=3.0),
    ]
    assert decide(["c1"], launches).levels[0].recommended == "plain"


def test_levels_are_judged_on_their_own():
    launches = [launch("base", 80), launch("eagle", 120, 3, accept=3.0)]
    launches += [launch("base", 2000, level="c32"), launch("eagle", 1500, 3, level="c32", accept=3.0)]
    verdict = decide(["c1", "c32"], launches)
    assert [level.decision for level in verdict.levels] == ["speculation", "no_speculation"]
    assert verdict.decision == "speculation"


def test_nothing_to_compare_is_undecided_in_words():
    assert "no baseline" in decide(["c1"], [launch("eagle", 90, 3)]).words[0]
    assert "no speculative candidate" in decide(["c1"], [launch("base", 90)]).words[0]
    assert decide([], []).decision == "undecided"


def test_an_unknown_interval_does_not_break_the_comparison():
    unknown = LaunchSpeed("eagle", "c1", Estimate(100.0, -math.inf, math.inf), 2.0, 2, 1, 3)
    assert decide(["c1"], [launch("base", 80), unknown]).decision == "undecided"


@pytest.mark.parametrize("noise", [0.005, 0.03])
def test_noise_of_repeats_is_found_and_never_zero(noise):
    rng = random.Random(3)
    found = launch_noise([[100 * math.exp(rng.gauss(0, noise)) for _ in range(4)] for _ in range(40)])
    assert found.relative_sd == pytest.approx(noise, rel=0.25)
    assert launch_noise([[100.0, 100.0]]).relative_sd > 0.01


def test_no_gain_is_rarely_called_one_among_many_candidates():
    rng, wrong = random.Random(5), 0
    for _ in range(400):
        launches = [launch("base", 100 * math.exp(rng.gauss(0, 0.015)))]
        launches += [launch(f"c{i}", 100 * math.exp(rng.gauss(0, 0.015)), 1 + i, accept=2.0) for i in range(30)]
        wrong += decide(["c1"], launches).decision == "speculation"
    assert wrong / 400 <= 0.03


@given(base=st.floats(10, 500), speed=st.floats(10, 500), accept=st.floats(1, 8))
def test_faster_than_the_baseline_iff_above_break_even(base, speed, accept):
    found = decide(["c1"], [launch("base", base), launch("eagle", speed, 7, accept=accept)]).levels[0].comparisons[0]
    if not math.isclose(base, speed, rel_tol=1e-9):
        assert (found.speedup.est > 1.0) == (accept > found.break_even)


def test_lookup_without_draft_steps_is_speculation_too():
    verdict = decide(["c1"], [launch("base", 80), launch("ngram", 100, 0, accept=1.9, topk=0, tokens=8)])
    assert verdict.decision == "speculation"
    assert verdict.levels[0].comparisons[0].baseline_id == "base"
