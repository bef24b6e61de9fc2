import math
import random
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.best_baseline import SETTINGS_SD
from spectune.analysis.comparison import Comparison, LaunchSpeed
from spectune.analysis.estimate import Estimate
from spectune.analysis.launch_noise import launch_noise
from spectune.analysis.verdict import Question, judge


def launch(name, speed, steps=0, *, accept=1.0, tokens=None, width=0.002):
    interval = Estimate(speed, speed * (1 - width), speed * (1 + width))
    speculates = (tokens or steps + 1) > 1
    flags = int(name == "tuned")
    return LaunchSpeed(name, interval, speculates, accept, (int(speculates), steps, tokens or steps + 1, flags))


def decide(launches, confirmed=()):
    groups = {}
    for one in launches:
        groups.setdefault(one.candidate_id, []).append(one.speed)
    return judge(Question("c1", launches, launch_noise(groups.values()), frozenset(confirmed)))


def test_a_clear_winner_is_speculation_with_its_arithmetic():
    found = decide([launch("base", 80), launch("fast", 120, 3, accept=3.0), launch("slow", 70, 6, accept=2.0)])
    assert found.decision == "speculation"
    assert found.recommended == "fast"
    assert found.best is found.comparisons[0]
    assert found.comparisons[0].speedup.est == pytest.approx(1.5)
    assert found.comparisons[0].break_even == pytest.approx(2.0)
    assert found.comparisons[1].break_even == pytest.approx(2.0 / (70 / 80))
    assert "speculation pays" in found.words
    assert "with 1 pair of launches" in found.words


@given(st.floats(-1, 1), st.floats(1e-4, 1), st.floats(1, 50), st.integers(1, 40))
def test_a_figure_is_judged_by_the_interval_that_is_shown(log_ratio, error, dof, picked_from):
    one = Comparison("a", "c1", "b", log_ratio, error, dof, picked_from, 2.0, (1, 1), (1,))
    shown = one.judged
    assert one.verdict == ("pays" if shown.lo > 1.0 else "loses" if shown.hi < 1.0 else "unclear")
    assert shown.lo <= one.speedup.lo <= one.speedup.hi <= shown.hi


def test_a_clear_loser_is_no_speculation():
    found = decide([launch("base", 82), launch("eagle", 60, 2, accept=2.0)])
    assert found.decision == "no_speculation"
    assert found.recommended == "base"
    assert found.best is found.comparisons[0]


def test_the_best_baseline_counts_not_the_first():
    found = decide([launch("plain", 60), launch("tuned", 82), launch("eagle", 70, 2, accept=2.0)])
    assert found.comparisons[0].baseline_id == "tuned"
    assert found.decision == "no_speculation"


def test_a_small_gain_from_one_pair_is_undecided_and_says_what_it_could_see():
    found = decide([launch("base", 100), launch("eagle", 102, 2, accept=2.0)])
    assert found.decision == "undecided"
    assert found.recommended == "base"
    assert found.words.startswith("c1: undecided: do without speculation until more launches show that it pays; eagle")
    assert 0.03 < found.detectable_effect < 0.15
    assert f"{found.detectable_effect:.1%} can be told from noise, not" in found.words


def test_repeats_decide_what_one_pair_could_not():
    launches = [launch("base", 100 + d) for d in (-0.4, 0.1, 0.3) * 4]
    launches += [launch("eagle", 102 + d, 2, accept=2.0) for d in (-0.3, 0.2, 0.1) * 4]
    found = decide(launches)
    assert found.decision == "speculation"
    assert found.detectable_effect < 0.02
    assert "with 12 pairs of launches" in found.words


def test_many_equal_repeats_are_a_tie_and_a_tie_is_the_simpler_engine():
    launches = [launch("base", 100 + d) for d in (-0.2, 0.2) * 6]
    launches += [launch("eagle", 100 + d, 2, accept=2.0) for d in (-0.2, 0.2) * 6]
    found = decide(launches)
    assert found.decision == "tie"
    assert found.recommended == "base"


def test_a_gain_that_is_shown_but_not_worth_it_is_a_tie():
    launches = [launch("base", 100)] * 400 + [launch("eagle", 100.6, 2, accept=2.0)] * 400
    found = decide(launches)
    assert found.comparisons[0].verdict == "pays"
    assert found.decision == "tie"


def test_among_candidates_as_fast_as_each_other_the_simplest_is_recommended():
    launches = [
        launch("base", 80),
        launch("deep", 120.5, 6, accept=4.0),
        launch("wide", 120.4, 3, accept=3.0, tokens=12),
        launch("plain", 120.0, 3, accept=3.0),
    ]
    assert decide(launches).recommended == "plain"


def test_confirmed_candidates_decide_alone_and_those_that_were_dropped_do_not():
    confirmed = [launch("base", 100)] * 4 + [launch("eagle", 106, 3, accept=2.0)] * 4
    dropped = [launch("other", 130, 3, accept=2.0)]
    lucky = [launch("lucky", 120, 5, accept=3.0)]
    found = decide([*confirmed, *dropped, *lucky], {"base", "eagle", "other"})
    assert found.best.candidate_id == "eagle"
    assert found.best.picked_from == 1
    assert {one.candidate_id: one.picked_from for one in found.comparisons}["lucky"] == 3


def test_a_baseline_that_was_relaunched_is_not_beaten_by_a_lucky_one():
    launches = [launch("lucky base", 110)] + [launch("base", 100)] * 4 + [launch("eagle", 106, 3, accept=2.0)] * 4
    assert decide(launches, {"base", "eagle"}).comparisons[0].baseline_id == "base"


def test_what_is_recommended_is_one_of_those_that_were_relaunched_in_either_branch():
    plain = [launch("base", 100), *[launch("tuned", 100.5)] * 2]
    slow, fast = [*[launch("five", 90, 5, accept=3.0)] * 2], [*[launch("five", 120, 5, accept=3.0)] * 2]
    near = launch("three", 119.9, 3, accept=3.0)
    assert decide([*plain, *slow]).recommended == "base"
    assert decide([*plain, *slow], ("tuned", "five")).recommended == "tuned"
    assert decide([*plain, *fast, near]).recommended == "three"
    assert decide([*plain, *fast, near], ("tuned", "five")).recommended == "five"


def test_nothing_to_compare_is_undecided_in_words():
    assert "no baseline" in decide([launch("eagle", 90, 3)]).words
    assert "no speculative candidate" in decide([launch("base", 90)]).words
    assert decide([]).decision == "undecided"
    assert decide([]).best is None


def test_an_unknown_interval_does_not_break_the_comparison():
    unknown = LaunchSpeed("eagle", Estimate(100.0, -math.inf, math.inf), True, 2.0, (1, 2, 3))
    assert decide([launch("base", 80), unknown]).decision == "undecided"


@pytest.mark.parametrize("noise", [0.005, 0.03])
def test_noise_of_repeats_is_found_and_never_zero(noise):
    rng = random.Random(3)
    repeats = [[Estimate.exactly(100 * math.exp(rng.gauss(0, noise))) for _ in range(4)] for _ in range(40)]
    assert launch_noise(repeats).relative_sd == pytest.approx(noise, rel=0.25)
    assert launch_noise([[Estimate.exactly(100.0)] * 2]).relative_sd > 0.01


def test_what_is_seen_within_a_launch_is_not_counted_as_noise_between_launches():
    rng, repeats = random.Random(4), []
    for _ in range(200):
        values = [100 * math.exp(rng.gauss(0, math.hypot(0.01, 0.02))) for _ in range(5)]
        repeats.append([Estimate(v, v * (1 - 1.96 * 0.02), v * (1 + 1.96 * 0.02)) for v in values])
    assert launch_noise(repeats).relative_sd == pytest.approx(0.01, rel=0.15)


def test_parameters_fitted_to_the_repeats_cost_degrees_of_freedom():
    repeats = [[Estimate.exactly(100.0 + n % 3) for n in range(6)]]
    assert (launch_noise(repeats).dof, launch_noise(repeats, fitted=1).dof) == (5, 4)
    assert "assumed" not in launch_noise(repeats, fitted=1).source
    assert "assumed" in launch_noise(repeats, fitted=4).source
    assert launch_noise(repeats, fitted=5).dof == 3


def test_the_launch_that_chose_between_two_finalists_does_not_count_in_its_favour():
    rng, noise, studies = random.Random(5), 0.03, 700
    errors = []
    for _ in range(studies):
        true = {name: math.log(110) + rng.gauss(0, SETTINGS_SD) for name in ("three", "four")}
        logs = {name: [one + rng.gauss(0, noise)] for name, one in true.items()}
        chosen = max(logs, key=logs.__getitem__)
        logs[chosen] += [true[chosen] + rng.gauss(0, noise) for _ in range(2)]
        launches = [launch("base", 100 * math.exp(noise * luck)) for luck in (-1, 0, 1)]
        launches += [launch(name, math.exp(log), 2, width=1e-6) for name in logs for log in logs[name]]
        compared = decide(launches, {"base", *logs}).comparisons
        errors.append(next(one.log_ratio for one in compared if one.candidate_id == chosen) - true[chosen])
    assert abs(fmean(errors) + math.log(100)) < 0.002


@pytest.mark.parametrize("noise", [0.015, 0.03])
def test_intervals_hold_the_truth_whatever_the_noise_of_the_machine(noise):
    rng, held = random.Random(7), 0
    for _ in range(1000):
        launches = [launch("base", 100 * math.exp(rng.gauss(0, noise)), width=1e-6) for _ in range(4)]
        launches += [launch("eagle", 110 * math.exp(rng.gauss(0, noise)), 2, width=1e-6) for _ in range(3)]
        speedup = decide(launches, {"base", "eagle"}).comparisons[0].speedup
        held += speedup.lo <= 1.1 <= speedup.hi
    assert 0.93 <= held / 1000 <= 0.97


def test_no_gain_is_rarely_called_one_among_many_candidates():
    rng, wrong = random.Random(5), 0
    for _ in range(400):
        launches = [launch("base", 100 * math.exp(rng.gauss(0, 0.015)))]
        launches += [launch(f"c{i}", 100 * math.exp(rng.gauss(0, 0.015)), 1 + i, accept=2.0) for i in range(30)]
        wrong += decide(launches).decision == "speculation"
    assert wrong / 400 <= 0.03


@pytest.mark.parametrize("noise", [0.015, 0.03])
def test_intervals_of_relaunched_pairs_hold_the_truth_as_often_as_they_say(noise):
    rng, held = random.Random(6), 0
    for _ in range(2000):
        drift = [launch("base", 100 * math.exp(rng.gauss(0, noise))) for _ in range(4)]
        pairs = [launch("eagle", 104 * math.exp(rng.gauss(0, noise)), 3, accept=2.0) for _ in range(4)]
        speedup = decide([*drift, *pairs], {"base", "eagle"}).best.judged
        held += speedup.lo <= 1.04 <= speedup.hi
    assert 0.92 <= held / 2000 <= 0.98


@given(base=st.floats(10, 500), speed=st.floats(10, 500), accept=st.floats(1, 8))
def test_faster_than_the_baseline_iff_above_break_even(base, speed, accept):
    found = decide([launch("base", base), launch("eagle", speed, 7, accept=accept)]).comparisons[0]
    if not math.isclose(base, speed, rel_tol=1e-9):
        assert (found.speedup.est > 1.0) == (accept > found.break_even)
    assert found.speedup.est * found.break_even == pytest.approx(accept)


def test_lookup_without_draft_steps_is_speculation_too():
    found = decide([launch("base", 80), launch("ngram", 100, 0, accept=1.9, tokens=8)])
    assert found.decision == "speculation"
    assert found.comparisons[0].baseline_id == "base"


def test_launches_that_were_not_measured_long_enough_say_nothing_of_launch_noise():
    """What they leave open is not taken away from the spread of the others: that would leave none."""
    known = [Estimate.exactly(100.0 + d) for d in (-2, 0, 2, 1)]
    unknown = [Estimate(130.0, -math.inf, math.inf), Estimate(100.0, 30.0, 170.0)]
    assert launch_noise([[*known, *unknown]]) == launch_noise([known])
    assert launch_noise([unknown]).dof == 3


def test_what_was_not_measured_long_enough_has_no_interval_and_decides_nothing():
    unknown = LaunchSpeed("eagle", Estimate(300.0, -math.inf, math.inf), True, 2.0, (1, 2, 3))
    found = decide([launch("base", 80), unknown])
    assert found.decision == "undecided"
    assert found.best.judged.est == pytest.approx(300 / 80)
    assert (found.best.judged.lo, found.best.judged.hi) == (-math.inf, math.inf)
    assert "(not measured long enough)" in found.words
    assert "do without speculation until levels measured for longer show that it pays" in found.words
    many = decide([launch("base", 80), *[unknown] * 20])
    assert many.best.long_enough  # twenty of them tell something together


def test_a_break_even_in_accept_length_is_told_of_decode_speeds_alone():
    question = Question("c1", [launch("base", 80), launch("fast", 120, 3, accept=3.0)], launch_noise([]))
    assert ", accept length 3.00, break-even 2.00; with 1 pair" in judge(question).words
    of_a_time = judge(replace(question, counted="1 / ttft p95 at c1")).words
    assert ", what counts is 1 / ttft p95 at c1; with 1 pair" in of_a_time
    assert "accept length" not in of_a_time


def test_the_chance_is_that_of_the_interval():
    found = decide([launch("base", 100), launch("eagle", 103, 2, accept=2.0)]).comparisons[0]
    assert found.interval(2 * found.chance - 1).lo == pytest.approx(1.0, rel=1e-4)
    even = decide([launch("base", 100), launch("eagle", 100, 2, accept=2.0)]).comparisons[0]
    assert even.chance == pytest.approx(0.5)


def test_a_question_that_is_asked_again_is_asked_for_more():
    launches = [launch("base", 100)] * 4 + [launch("eagle", 106, 3, accept=2.0)] * 4
    noise = launch_noise([[Estimate.exactly(v) for v in (100.0, 101.0, 99.0, 100.5)]])
    once, again = (judge(Question("c1", launches, noise, frozenset({"base", "eagle"}), looks=n)).best for n in (1, 2))
    assert again.judged.lo < once.judged.lo
    assert again.speedup == once.speedup
