"""How far a study is, in words."""

from __future__ import annotations

import pytest

from spectune.cli.live import left_words
from spectune.cli.searching import nothing_more
from spectune.search.prospect import Progress


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


def test_a_study_that_launches_nothing_more_says_why() -> None:
    assert nothing_more(9, 12, "it is plain") == (
        "nothing more was launched, although the budget now allows 12 launches: it is plain"
    )
    for allowed in (9, None):
        assert nothing_more(9, allowed, "it is plain") == "nothing more was launched: it is plain"
