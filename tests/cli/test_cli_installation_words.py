"""How an installation is told where no terminal shows a bar: not in silence, and nothing twice."""

from __future__ import annotations

import io
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from spectune.cli.installation_words import ENOUGH, Lines, left, standing, told

DEADLINE_S = 240.0


@pytest.mark.parametrize(
    ("share", "elapsed_s", "left_s", "words"),
    [
        (None, 15.0, None, "asking: 15 s so far"),
        (0.31, 45.0, None, "asking: 31% done, 45 s so far"),
        (0.31, 45.0, 100.0, "asking: 31% done, 45 s so far, about 2 min left"),
    ],
)
def test_a_line_says_how_far_it_is(share: float | None, elapsed_s: float, left_s: float | None, words: str) -> None:
    assert standing("asking", share, elapsed_s, left_s) == words


@given(st.floats(0.0, 1.0), st.floats(0.0, 1e4))
def test_the_rest_takes_as_long_as_the_pace_says(done: float, elapsed_s: float) -> None:
    seconds = left(done, 1.0 - done, elapsed_s)
    if done < ENOUGH:
        assert seconds is None
    else:
        assert seconds == pytest.approx(elapsed_s / done - elapsed_s, abs=1e-6)


def test_a_step_that_says_nothing_is_told_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    now, said = [100.0], io.StringIO()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Lines(Console(file=said, width=1000), "asking pip", every_s=0.01) as lines:
        now[0] = 100.4  # long after the first line, as it counts here
        until(lambda: "asking pip: 0 s so far" in said.getvalue())
        for share in (0.45, 0.5, 0.75):  # the first is what an earlier installation has done
            lines("installing SGLang", share)
            words = f"installing SGLang: {share:.0%} done"
            until(lambda: words in said.getvalue())  # noqa: B023 (asked before it changes)
        until(lambda: " left" in said.getvalue())
    first, *_, last = said.getvalue().splitlines()
    assert first == "asking pip"
    assert last.startswith("installing SGLang: 75% done, 0 s so far, about 0 s left")


def test_a_line_that_would_repeat_the_last_one_waits() -> None:
    lines = Lines(Console(file=io.StringIO()), "asking pip", every_s=15.0)
    began = lines.began
    lines("installing torch", 0.20)
    assert lines.line(began + 15) == "installing torch: 20% done, 15 s so far"
    lines("installing torch", 0.45)
    assert lines.line(began + 30) == "installing torch: 45% done, 30 s so far, about 33 s left"
    assert [lines.line(began + at) for at in (45, 60, 75)] == [None] * 3
    assert lines.line(began + 90) == "installing torch: 45% done, 2 min so far", "nobody knows how long it stands still"
    lines("installing torch", 0.50)
    assert lines.line(began + 105) == "installing torch: 50% done, 2 min so far, about 2 min left"


def test_a_short_installation_is_one_line() -> None:
    said = io.StringIO()
    with told(Console(file=said, width=1000), "asking pip") as tell:
        for step in ("asking pip", "installing torch", "installing torch", "verifying"):
            tell(step, 0.5)
    assert said.getvalue() == "asking pip\n"


def test_a_terminal_has_a_bar_that_goes_away() -> None:
    said = io.StringIO()
    console = Console(file=said, width=100, force_terminal=True)
    with told(console, "asking pip") as tell:
        tell("installing torch", 0.25)
        console.print("a remark")
    assert "installing torch" in said.getvalue()
    assert "25%" in said.getvalue()
    assert said.getvalue().count("a remark") == 1


def until(seen: Callable[[], bool]) -> None:
    end = time.perf_counter() + DEADLINE_S
    while not seen():
        assert time.perf_counter() < end
        time.sleep(0.005)
