"""How far a study is, in words."""

from __future__ import annotations

import pytest

from spectune.cli.live import left_words
from spectune.search.prospect import Progress


@pytest.mark.parametrize(
    ("done", "left_s", "since_s", "words"),
    [
        (4, 300.0, 10.0, "about 5 min left"),
        (4, 3.0, 0.0, "about 3 s left"),
        (4, 3.0, 9.0, "this launch takes longer than those before"),
        (9, 3.0, 9.0, "nearly done"),
    ],
)
def test_only_the_last_launch_is_nearly_done(done: int, left_s: float, since_s: float, words: str) -> None:
    progress = Progress(done=done, planned=10, spent_s=60.0, left_s=left_s)
    assert left_words(progress, since_s) == f"{done} of 10 launches done, {words}"
