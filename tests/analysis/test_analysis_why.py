import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectune.analysis.estimate import Estimate
from spectune.analysis.why import DrafterPoint, training
from spectune.analysis.why.arithmetic import discrepancies, needed, verify_alone
from spectune.analysis.why.cycle import CycleParts
from spectune.analysis.why.forced import ForcedLevel, ForcedRuns, forced_lengths
from spectune.analysis.why.load_limit import load_limit

FIELD_POINTS = (DrafterPoint(10_000, 1.9), DrafterPoint(37_000, 2.0), DrafterPoint(1_400_000, 3.3))
ON_AN_ENGINE = {"bound": None, "tokens_per_sample": 1000, "throughput_tok_s": 1500.0, "where": "c32"}


def near(value, share=0.02):
    return Estimate(value, value * (1 - share), value * (1 + share))


def points(*speedups, loads=(1, 8, 32), share=0.02):
    return [(f"c{load}", load, near(speedup, share)) for load, speedup in zip(loads, speedups, strict=True)]


def test_golden_targets_at_thirty_milliseconds():
    found = needed([100, 120], baseline_tok_s=82, cycle_ms=near(30.0, 0.1), accept_length=2.0, bound=3)
    assert [round(one.accept_length.est, 2) for one in found] == [3.0, 3.6]
    assert [one.verdict for one in found] == ["perfect drafter", "out of reach"]
    assert [one.reachable for one in found] == [True, False]
    assert found[0].accept_length.lo == pytest.approx(2.7)
    assert found[0].accept_length.hi == pytest.approx(3.3)


def test_golden_the_verify_alone_of_the_field_case():
    parts = CycleParts(near(2.2), near(30.0), near(1.1), 0.0, "")
    figures = {"baseline_tok_s": 82.0, "cycle_ms": 33.3, "accept_length": 2.0, "bound": 3}
    alone = verify_alone(parts, [100, 120], **figures)
    assert (round(alone.break_even, 2), round(alone.speed_tok_s, 1), round(alone.missing_ms, 1)) == (2.46, 66.7, 3.3)
    assert [one.verdict for one in alone.needed] == ["perfect drafter", "out of reach"]
    assert "break-even of 2.46, and 66.7 tok/s" in alone.words
    assert "draft and host take 3.3 ms more" in alone.words
    assert verify_alone(CycleParts(None, None, None, 0.0, ""), [], **figures) is None
    assert verify_alone(CycleParts(near(0.1), near(33.2), None, 0.0, ""), [], **figures) is None


def test_figures_that_agree_are_no_contradiction():
    figures = {"decode_cycle_ms": None, "engine_cycle_ms": None, "accept_length": 2.0, "break_even": 1.5, "bound": 3}
    assert list(discrepancies(cycle_ms=30.0, inter_chunk_ms=30.5, **figures)) == []
    (long,) = discrepancies(cycle_ms=30.0, inter_chunk_ms=60.0, **figures)
    assert long.missing_ms == -30.0
    assert "too many, unless a chunk holds several cycles" in long.words
    (beyond,) = discrepancies(cycle_ms=30.0, inter_chunk_ms=30.0, **{**figures, "accept_length": 3.2})
    assert beyond.between == "bound"


def test_the_limit_lies_between_the_levels_where_the_speedup_falls_through_one():
    found = load_limit("id", "label", points(1.3, 1.1, 0.8))
    assert found.between == ("c8", "c32")
    assert 8 < found.concurrency.lo < found.concurrency.est < found.concurrency.hi < 32
    share = math.log(1.1) / math.log(1.1 / 0.8)
    assert found.concurrency.est == pytest.approx(8 * 4**share)


def test_a_limit_whose_end_is_beyond_the_levels_says_so():
    found = load_limit("id", "label", points(1.3, 1.1, 0.99, share=0.05))
    assert found.concurrency.hi == math.inf
    assert "above 32" in found.words
    assert found.to_json()["concurrency"][2] is None


@pytest.mark.parametrize(
    ("speedups", "words"),
    [
        ((1.3, 1.2, 1.1), "speculation pays at every load measured, c1 to c32"),
        ((0.9, 0.8, 0.7), "speculation pays at no load measured, c1 to c32"),
        ((1.3, 1.2, 1.005), "speculation seems to pay at every load measured, c1 to c32: shown at c1 and c8 only"),
        ((0.995, 0.995, 0.995), "speculation seems to pay at no load measured, c1 to c32: shown at none of them"),
        ((0.9, 1.1, 1.2), "does not pay at c1, and does from c8 on"),
        ((0.995, 1.1, 1.2), "seems not to pay at c1, and to pay from c8 on up to c32"),
        ((0.9, 1.1, 0.8), "only from c8 on"),
    ],
)
def test_every_course_of_the_speedup_has_words(speedups, words):
    assert words in load_limit("id", "label", points(*speedups)).words


def test_one_load_has_no_limit():
    assert load_limit("id", "label", points(1.1, loads=(8,))) is None


@given(st.lists(st.floats(0.2, 5.0), min_size=2, max_size=6))
def test_a_limit_lies_between_a_gain_and_a_loss(speedups):
    loads = [2**power for power in range(len(speedups))]
    found = load_limit("id", "label", points(*speedups, loads=loads))
    if found.between is None:
        rising = all(s >= 1 for s in speedups[next((i for i, s in enumerate(speedups) if s >= 1), len(speedups)) :])
        assert rising
        return
    at = {level: speedup.est for level, _, speedup in found.points}
    assert at[found.between[0]] >= 1.0 > at[found.between[1]]
    assert found.concurrency.lo <= found.concurrency.est <= found.concurrency.hi


def test_golden_training_samples_of_the_field_case():
    found = training(FIELD_POINTS, 2.46, **ON_AN_ENGINE)
    assert 60_000 < found.samples.lo < found.samples.est < found.samples.hi < 500_000
    assert found.probability > 0.99
    assert found.cost.hours.est == pytest.approx(found.samples.est * 1000 / 1500 / 3600)
    assert any("3 points" in words for words in found.warnings)
    far = training(FIELD_POINTS, 3.6, **ON_AN_ENGINE)
    assert far.samples.hi == math.inf
    assert "no limit" in far.words[0]
    assert far.to_json()["samples"][2] is None


def test_an_accept_length_beyond_the_curve_costs_no_number():
    flat = (DrafterPoint(10_000, 1.9), DrafterPoint(100_000, 2.0), DrafterPoint(1_000_000, 2.0))
    found = training(flat, 6.5, **ON_AN_ENGINE)
    assert found.samples is None
    assert found.cost is None
    assert found.probability < 0.5
    assert "beyond what more samples reach" in found.words[0]


def test_curves_reach_as_far_as_the_points_and_the_settings():
    long_drafts = (DrafterPoint(10_000, 9.0), DrafterPoint(100_000, 11.0), DrafterPoint(1_000_000, 12.0))
    found = training(long_drafts, 10.0, **{**ON_AN_ENGINE, "bound": 16})
    assert 10_000 < found.samples.est < 100_000
    short_drafts = (DrafterPoint(10_000, 4.0), DrafterPoint(100_000, 5.0), DrafterPoint(1_000_000, 5.8))
    reach = [training(short_drafts, 9.0, **{**ON_AN_ENGINE, "bound": bound}).probability for bound in (8, 16)]
    assert reach[0] == 0.0 < reach[1]


def test_no_fraction_of_a_sample_is_asked_for():
    long_before = (DrafterPoint(1, 4.0), DrafterPoint(2, 4.0), DrafterPoint(4, 4.0))
    assert training(long_before, 1.3, **ON_AN_ENGINE).samples.lo >= 1.0


def test_what_speaks_against_the_points_is_said():
    falling = (DrafterPoint(10_000, 2.4), DrafterPoint(100_000, 2.0))
    words = training(falling, 3.0, **{**ON_AN_ENGINE, "bound": 2}).warnings
    assert any("differ in more than samples" in text for text in words)
    assert any("more than the 2 these settings can accept" in text for text in words)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(1.05, 6.0), min_size=2, max_size=4))
def test_more_asks_for_more_samples_and_curves_rise(lengths):
    drafters = [DrafterPoint(10 ** (3 + at), length) for at, length in enumerate(lengths)]
    less, more = (training(drafters, wanted, **ON_AN_ENGINE) for wanted in (1.5, 2.5))
    assert less.probability >= more.probability - 1e-9
    if less.samples is not None and more.samples is not None:
        assert less.samples.est <= more.samples.est
    assert all(one[1].est <= other[1].est + 1e-9 for one, other in itertools.pairwise(less.curve))
    assert all(estimate.lo <= estimate.est <= estimate.hi for _, estimate in less.curve)


def test_forced_lengths_are_whole_and_reach_from_nothing_to_all():
    assert forced_lengths(2) == (1, 2)
    assert forced_lengths(5) == (1, 2, 4, 5)
    for bound in range(2, 40):
        lengths = forced_lengths(bound)
        assert (lengths[0], lengths[-1]) == (1, bound)
        assert len(lengths) <= 4


def test_a_forced_level_knows_how_far_off_it_is():
    level = ForcedLevel("c1", 3.0, near(3.02), 100.0, near(97.0))
    assert level.off == pytest.approx(-0.03)
    assert level.obeyed
    assert not ForcedLevel("c1", 3.0, near(2.0), 100.0, near(97.0)).obeyed
    runs = ForcedRuns((level, ForcedLevel("c8", 3.0, near(3.0), 100.0, near(101.0))), 0.01)
    assert runs.worst == pytest.approx(0.03)
    assert runs.to_json()["worst"] == runs.worst
    assert runs.steady
    assert not ForcedRuns((level,), 0.3).steady
    assert ForcedRuns((), 0.0).worst == 0.0
    assert level.to_json()["off"] == level.off


def test_a_cycle_that_is_not_known_well_enough_decides_no_target():
    unclear, beyond = needed([120, 200], baseline_tok_s=82, cycle_ms=near(30.0, 0.2), accept_length=2.0, bound=3)
    assert (unclear.verdict, unclear.reachable, beyond.verdict) == ("unclear", True, "out of reach")
    assert unclear.words == (
        "120 tok/s needs an accept length of 3.60, and 2 steps can give 3 at most; anything from 2.88 to 4.32 by the "
        "interval of the cycle, so it is unclear whether it is out of reach"
    )
    (reached,) = needed([65], baseline_tok_s=82, cycle_ms=near(30.0, 0.2), accept_length=2.0, bound=3)
    assert reached.words.startswith("65 tok/s needs an accept length of 1.95, and 2.00 is accepted; anything from 1.56")
    unknown = Estimate(30.0, -math.inf, math.inf)
    (one,) = needed([200], baseline_tok_s=82, cycle_ms=unknown, accept_length=2.0, bound=3)
    assert one.words == (
        "200 tok/s needs an accept length of 6.00, and 2 steps can give 3 at most; the cycle was not measured long "
        "enough to be sure"
    )
