"""A command that has nothing to say yet says so, to a terminal alone."""

from __future__ import annotations

import io
import sys
import time

import pytest

from spectune.cli.silence import ERASE, NOTE, Silence

DEADLINE_S = 240.0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def waited_for(stream: io.StringIO, text: str) -> str:
    end = time.monotonic() + DEADLINE_S
    while text not in stream.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    return stream.getvalue()


def test_the_note_comes_and_goes_before_the_first_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    silence = Silence(0.0)
    silence.begin()
    assert waited_for(terminal, NOTE) == NOTE
    silence.end()
    silence.end()
    assert terminal.getvalue() == NOTE + ERASE


def test_who_speaks_at_once_is_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    silence = Silence(3600.0)
    silence.begin()
    silence.end()
    assert terminal.getvalue() == ""


def test_a_pipe_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    silence = Silence(0.0)
    silence.begin()
    silence.end()
    assert pipe.getvalue() == ""
