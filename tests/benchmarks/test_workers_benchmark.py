"""The benchmark of several places as it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forked import python_m
from readme_commands import ROOT

FIELDS = {
    "crew", "launches", "ratio", "by_launch", "score", "found", "score_lost", "score_lost_error", "wrong", "coverage",
    "decisions",
}  # fmt: skip


def test_two_places_take_little_more_than_half_the_time(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    done = python_m("benchmarks.workers", "--seeds", "1", "--json", table, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(table.read_text())
    assert told["profile"] == "quiet-105"
    one, two, slower = told["sums"]
    assert one.keys() == FIELDS
    assert (one["crew"], one["ratio"]) == ("one", pytest.approx(1.0))
    assert max(two["by_launch"], slower["by_launch"]) <= 0.6  # of simulated time
    assert [row["launches"] for row in told["rows"]] == [pytest.approx(30, abs=1)] * 3
