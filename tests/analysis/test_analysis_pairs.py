"""How many more pairs decide, and whether they do."""

import math
import random

import pytest

from spectune.analysis.comparison import LaunchSpeed
from spectune.analysis.estimate import Estimate
from spectune.analysis.launch_noise import launch_noise
from spectune.analysis.pairs import LIKELY, MOST_PAIRS, pairs_to_decide
from spectune.analysis.verdict import Question, judge

BOTH = frozenset({"base", "eagle"})


def launch(name, speed):
    speculates = name == "eagle"
    return LaunchSpeed(name, Estimate.exactly(speed), speculates, 1.0 + speculates, (int(speculates), 2, 3))


def asked(baselines, eagles, confirmed=BOTH, looks=1):
    launches = [launch("base", speed) for speed in baselines] + [launch("eagle", speed) for speed in eagles]
    noise = launch_noise([[Estimate.exactly(speed) for speed in group] for group in (baselines, eagles)])
    return Question("c1", launches, noise, confirmed, looks=looks)


def missing(question):
    return pairs_to_decide(question, judge(question))


def drawn(rng, gain, noise, pairs):
    return [[100 * math.exp(mean + rng.gauss(0, noise)) for _ in range(pairs)] for mean in (0.0, gain)]


def test_what_is_decided_needs_none_and_neither_does_what_cannot_be_compared():
    assert missing(asked([100, 101, 99], [150, 151, 149])) == 0
    assert missing(asked([100, 101, 99], [50, 51, 49])) == 0
    assert missing(asked([], [150, 151])) == 0
    assert missing(asked([100, 101], [])) == 0


def test_a_small_gain_in_some_noise_needs_a_few_and_more_noise_needs_more():
    few = missing(asked([100, 101, 99], [101.8, 102.8, 100.8]))
    more = missing(asked([100, 102, 98], [101.8, 103.8, 99.8]))
    assert 1 <= few < more <= MOST_PAIRS


def test_what_noise_drowns_is_beyond_reason():
    assert missing(asked([100, 110, 90], [100.5, 110.5, 90.5])) is None


def test_what_was_not_confirmed_starts_anew():
    """The launches of the search found the candidate; those that decide are made afterwards, all of them."""
    speeds = [100, 101, 99], [101.8, 102.8, 100.8]
    assert 1 <= missing(asked(*speeds)) < missing(asked(*speeds, frozenset()))


@pytest.mark.parametrize("seen", [0.02, 0.005])
def test_as_many_decide_as_often_as_promised(seen):
    """The true gain is drawn as the launches made leave it open; the pairs that are told to be missing are made."""
    rng = random.Random(11)
    baselines, eagles = [100, 101.5, 98.5], [100 * math.exp(seen) * f for f in (1.0, 1.015, 0.985)]
    question = asked(baselines, eagles)
    pairs, best, decided = missing(question), judge(question).best, 0
    for _ in range(400):
        more = drawn(rng, rng.gauss(best.log_ratio, best.error), question.noise.relative_sd, pairs)
        decided += judge(asked([*baselines, *more[0]], [*eagles, *more[1]], looks=2)).decision != "undecided"
    assert decided / 400 == pytest.approx(LIKELY, abs=0.12)


@pytest.mark.parametrize(("gain", "noise"), [(0.0, 0.015), (0.02, 0.015), (0.02, 0.03)])
def test_going_on_where_it_was_undecided_keeps_the_intervals_honest(gain, noise):
    rng, held, wrong, open_ = random.Random(5), 0, 0, 0
    for _ in range(500):
        speeds = drawn(rng, gain, noise, 4)
        question = asked(*speeds)
        more = missing(question)
        if more:
            question = asked(*(a + b for a, b in zip(speeds, drawn(rng, gain, noise, more), strict=True)), looks=2)
        judged = judge(question)
        speedup = judged.best.judged
        held += speedup.lo <= math.exp(gain) <= speedup.hi
        wrong += judged.decision == "speculation" and gain == 0.0
        open_ += judged.decision == "undecided"
    assert held / 500 >= 0.92
    assert wrong / 500 <= 0.05
    assert open_ / 500 <= 0.6
