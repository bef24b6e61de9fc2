"""A study as it is told line by line, where no terminal shows a table."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console
from search_samples import baseline, chain, record, space

from spectune.cli.live import Lines
from spectune.search.planning.prospect import Progress
from spectune.search.storage.steps import Role, Step


def test_nothing_is_said_twice_of_launches_that_end_together() -> None:
    at, said = space(), io.StringIO()
    lines = Lines(at, Console(file=said, width=1000))
    lines.planned(Progress(done=2, planned=10, spent_s=60.0, left_s=300.0))
    for number in range(2):
        lines.finished(record(number, baseline()))
    lines.launching(Step(2, Role.SEARCH, chain(2), "because"))
    told = said.getvalue().splitlines()
    assert sum("2 of 10 launches done" in line for line in told) == 1
    assert sum("because" in line for line in told) == 1


def test_a_line_breaks_a_long_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    said = io.StringIO()
    lines = Lines(space(), Console(file=said, width=1000))
    lines.launching(Step(0, Role.BASELINE, baseline(), "first"))
    for second in range(40):
        clock[0] = 100.0 + second
        lines.says(f"loading, {second} s")
    told = said.getvalue().splitlines()[1:]
    assert told == ["    loading, 5 s", "    loading, 15 s", "    loading, 30 s"]
