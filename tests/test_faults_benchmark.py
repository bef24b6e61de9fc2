"""`python -m benchmarks.faults`: a few faults of every sort, and what its rows say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from forked import python_m
from readme_commands import ROOT

from benchmarks.faults.__main__ import all_cases, wanted
from benchmarks.faults.crew import Unmet
from benchmarks.faults.databases import attempted
from benchmarks.faults.matrix import KINDS, expected
from benchmarks.faults.row import COLUMNS, Row, table
from spectune.engines.simulated.faults import POINTS
from spectune.serving import FailureClass


def test_faults_over_the_server_and_in_virtual_time_are_met(tmp_path: Path) -> None:
    words = ("--only", "oom at load (served)", "--only", "garbage_output at ready", "--json", tmp_path / "rows.json")
    done = python_m("benchmarks.faults", *words, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [(row["fault"], row["class"], row["ok"]) for row in rows] == [
        ("oom at load (served)", "memory", True), ("garbage_output at ready (virtual)", "corrupt", True),
    ]  # fmt: skip
    for row in rows:
        assert set(COLUMNS) <= row.keys()
        assert row["detected_s"] > 0
        assert row["continued"]
        assert row["records_intact"]
        assert row["processes_left"] == row["ports_left"] == 0
    assert "2 faults in" in done.stdout


@pytest.mark.services
@pytest.mark.parametrize(
    "words", ["database gone and back PostgreSQL", "worker cut off past PostgreSQL", "worker lost SQLite"]
)
def test_faults_of_two_workers_are_met(words: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    command = [sys.executable, "-m", "benchmarks.faults", "--only", words, "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(file.read_text())["rows"]
    assert row["ok"]
    assert row["continued"]
    assert row["records_intact"]
    assert row["detected_s"] > 0


def test_a_row_that_could_not_be_tried_is_no_success() -> None:
    def attempt() -> Row:
        raise Unmet("not run: PostgreSQL is not installed")

    row = attempted("database gone", attempt)
    assert not row.ok
    assert "not run" in table([row])


def test_workers_are_lost_on_a_server_and_on_a_file(tmp_path: Path) -> None:
    names = [case.name for case in all_cases(tmp_path, flood_mb=1)]
    for database in ("PostgreSQL", "SQLite"):
        for fault in ("worker lost", "database"):
            assert [name for name in names if wanted(name, [f"{fault} {database}"])]


def test_nothing_to_try_is_no_success() -> None:
    assert python_m("benchmarks.faults", "--only", "no such fault", cwd=ROOT).returncode == 1


def test_every_kind_is_tried_at_every_point(tmp_path: Path) -> None:
    names = [case.name for case in all_cases(tmp_path, flood_mb=1)]
    assert len(set(names)) == len(names)
    for at in POINTS:
        for kind in KINDS:
            assert [name for name in names if wanted(name, [f"{kind} at {at}"])]
            assert expected(kind, at) in {None, *FailureClass}
