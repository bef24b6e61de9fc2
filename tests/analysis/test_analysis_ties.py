import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_analysis_verdict import launch

from spectune.analysis.launch_noise import LaunchNoise
from spectune.analysis.ties import ties
from spectune.analysis.verdict import Question, judge


def asked(launches, noise=0.045):
    return Question("c1", launches, LaunchNoise(noise, 8.0, "seen"))


def test_what_may_be_as_fast_is_named_with_the_interval_of_the_ratio():
    near, slow = launch("near", 128, 4), launch("slow", 90, 5)
    found = ties(asked([launch("base", 100), launch("pick", 130, 2), near, slow]), "pick")
    assert [one.candidate_id for one in found] == ["near"]
    assert found[0].speedup.est == pytest.approx(128 / 130)
    assert found[0].speedup.lo < 0.9
    assert found[0].speedup.hi > 1.1


def test_more_launches_tell_apart_what_one_does_not():
    pair = [launch("pick", 130, 2), launch("near", 124, 4)]
    assert ties(asked(pair), "pick")
    assert not ties(asked(pair * 40), "pick")


def test_the_other_branch_is_asked_about_where_it_is_open_with_the_interval_of_the_verdict():
    question = asked([launch("base", 100), launch("other base", 99), launch("eagle", 101.5, 3), launch("worse", 70, 3)])
    judged = judge(question).comparisons
    assert [one.candidate_id for one in ties(question, "base")] == ["other base"]
    eagle, other = ties(question, "base", judged=judged)
    assert (eagle.candidate_id, other.candidate_id) == ("eagle", "other base")
    assert eagle.judged == judged[0].judged
    assert eagle.picked_from == 2


def test_what_was_not_measured_long_enough_is_not_told_apart():
    (found,) = ties(asked([launch("pick", 130, 2), launch("short", 90, 3, width=0.9)]), "pick")
    assert (found.candidate_id, found.long_enough) == ("short", False)


def test_who_was_launched_again_comes_first_and_nobody_is_tied_with_nothing():
    launches = [launch("base", 100), launch("closest", 95, 3, width=0.9), launch("lucky", 99, 4)]
    question = dataclasses.replace(asked(launches), confirmed=frozenset({"base", "closest"}))
    judged = judge(question)
    assert judged.best.candidate_id == "closest"
    assert [one.candidate_id for one in ties(question, "base", judged=judged.comparisons)] == ["closest", "lucky"]
    assert ties(asked([launch("near", 130, 2)]), "nobody") == ()


@given(st.lists(st.floats(50, 200), min_size=1, max_size=8), st.floats(0.002, 0.1))
def test_of_two_candidates_each_is_tied_with_the_other_or_the_faster_one_is_not_shown_slower(speeds, noise):
    launches = [launch(str(n), speed, n + 1) for n, speed in enumerate(speeds)]
    names = {
        name: {one.candidate_id for one in ties(asked(launches, noise), name)} for name in map(str, range(len(speeds)))
    }
    for one, speed in enumerate(speeds):
        for other, faster in enumerate(speeds):
            if one != other and faster >= speed:
                assert str(other) in names[str(one)]
