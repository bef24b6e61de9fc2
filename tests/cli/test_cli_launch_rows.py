"""The table of a running study keeps its columns whatever a launch has to say."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from readme_commands import ROOT
from rich.console import Console

from spectune.cli.launch_rows import launch_table
from spectune.search import StudyFolder, TrialRecord
from spectune.search.storage.records import Status
from spectune.serving.failures import Failure, FailureClass
from spectune.space import SearchSpace

LONG = "the engine died with exit code 1:\n  " + "RuntimeError: not enough memory; try to reduce the static share " * 5


@pytest.fixture(scope="module")
def example() -> tuple[SearchSpace, list[TrialRecord]]:
    folder = StudyFolder(ROOT / "studies" / "example")
    return folder.space(), list(folder.records())


def failed(record: TrialRecord) -> TrialRecord:
    return replace(record, status=Status.FAILED, levels=(), failure=Failure(FailureClass.MEMORY, LONG, ""))


def shown(space: SearchSpace, records: list[TrialRecord], width: int) -> list[str]:
    console = Console(file=StringIO(), width=width, force_terminal=False)
    console.print(launch_table(space, records, None, (), width))
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_long_failure_is_cut_and_every_column_stays(
    example: tuple[SearchSpace, list[TrialRecord]], width: int
) -> None:
    space, records = example
    lines = shown(space, [*records[:3], failed(records[3])], width)
    assert lines[0].split() == ["#", "launch", "c1", "tok/s", "(τ)", "c8", "tok/s", "(τ)"]
    for line, record in zip(lines[1:5], records, strict=False):
        assert line.split()[0] == str(record.trial)
        assert space.label(record.candidate)[:19] in line
        assert len(line) <= width
    assert "memory: " in lines[4]
    assert lines[4].endswith("…")
    assert lines[5].startswith("tok/s of one request")


def test_where_nothing_else_gives_way_the_last_levels_are_left_out_and_named(
    example: tuple[SearchSpace, list[TrialRecord]],
) -> None:
    space, records = example
    lines = shown(space, [*records[:2], failed(records[2])], 56)
    assert "c1 tok/s (τ)" in lines[0]
    assert "c8 tok/s (τ)" not in lines[0]
    assert "no room here for c8" in " ".join(lines)
    assert all(len(line) <= 56 for line in lines)
