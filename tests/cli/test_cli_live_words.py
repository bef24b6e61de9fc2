"""How far a study is, in words."""

from __future__ import annotations

import pytest

from spectune.cli.progress_words import left_words
from spectune.cli.searching import nothing_more
from spectune.search.planning.prospect import Progress, Prospect


@pytest.mark.parametrize(
    ("done", "left_s", "since_s", "words"),
    [
        (4, 300.0, 10.0, "about 5 min left"),
        (4, 3.0, 0.0, "about 3 s left"),
        (4, 3.0, 9.0, "this launch takes longer than those before"),
        (9, 3.0, 9.0, "nearly done"),
        (10, 0.0, 9.0, ""),
    ],
)
def test_only_the_last_launch_is_nearly_done(done: int, left_s: float, since_s: float, words: str) -> None:
    progress = Progress(done=done, planned=10, spent_s=60.0, left_s=left_s)
    assert left_words(progress, since_s) == ", ".join(filter(None, [f"{done} of 10 launches done", words]))


@pytest.mark.parametrize(
    ("done", "expected", "most", "words"),
    [
        (7, 18, 40, "7 of about 18 launches done (40 at most), about 5 min left, about 27 GPU-hours in all"),
        (7, 18, None, "7 of about 18 launches done, about 5 min left, about 27 GPU-hours in all"),
        (30, 30, 40, "30 launches done (40 at most), about 27 GPU-hours so far"),
        (39, 39, None, "39 launches done, about 27 GPU-hours so far"),
        (7, 40, 40, "7 of at most 40 launches done, about 5 min left, about 27 GPU-hours in all"),
        (40, 40, 40, "40 of 40 launches done, about 27 GPU-hours so far"),
    ],
)
def test_a_total_that_is_not_known_is_not_told_as_one(done: int, expected: int, most: int | None, words: str) -> None:
    cost = Prospect(launches=expected, most=most, hours=3.4, gpu_hours=27.2, pays=None, rests_on="")
    at = Progress(done=done, planned=expected, spent_s=60.0, left_s=300.0, expected=cost)
    assert left_words(at, 0.0) == words


def test_only_the_last_launch_that_is_allowed_is_nearly_the_end() -> None:
    cost = Prospect(launches=30, most=40, hours=3.4, gpu_hours=0.0, pays=None, rests_on="")
    at = Progress(done=29, planned=30, spent_s=60.0, left_s=3.0, expected=cost)
    assert left_words(at, 0.0) == "29 of about 30 launches done (40 at most)"


def test_a_study_that_launches_nothing_more_says_why() -> None:
    assert nothing_more(9, 12, "it is plain") == (
        "nothing more was launched: 9 of the 12 launches that the budget allows were made, and the search needs no "
        "more: it is plain"
    )
    for allowed in (9, None):
        assert nothing_more(9, allowed, "it is plain") == "nothing more was launched: it is plain"
