"""The benchmark of agreement: what it counts, and as it is called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from readme_commands import ROOT

from benchmarks.agreement import Agreement, Said, agreement, summed

NONE: frozenset[str] = frozenset()
A, B = Said("a", frozenset("b"), NONE, 0.0, "speculation"), Said("b", frozenset("a"), NONE, 0.02, "undecided")
APART, NEVER = (Said("b", NONE, apart, 0.0, "speculation") for apart in (frozenset("a"), NONE))


@pytest.mark.parametrize(
    ("one", "other", "found"), [(A, A, "same"), (A, B, "tie"), (A, NEVER, "tie"), (A, APART, "half")]
)
def test_two_studies_agree_where_each_names_the_other(one: Said, other: Said, found: Agreement) -> None:
    assert agreement(one, other) == agreement(other, one) == found


def test_what_neither_names_is_no_agreement() -> None:
    other = Said("c", frozenset("d"), NONE, 0.0, "tie")
    assert (agreement(other, NEVER), agreement(other, Said("a", NONE, frozenset("c"), 0.0, "tie"))) == (
        "unseen",
        "apart",
    )


def test_shares_and_losses_are_means() -> None:
    row = summed([(A, A), (A, B)])
    assert (row["same"], row["tie"], row["apart"]) == (0.5, 0.5, 0.0)
    assert row["loss"] == pytest.approx(0.005)
    assert (row["undecided"], row["tied"], row["pairs"]) == (0.25, 1.0, 2)


def test_it_is_called_for_a_budget(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    done = subprocess.run(
        [
            sys.executable, "-m", "benchmarks.agreement", "--profile", "benchmarks/profiles/tour-near.yaml",
            "--space", "search_spaces/quickstart.yaml", "--pairs", "1", "--trials", "8", "--json", str(table),
        ],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    content = json.loads(table.read_text())
    assert content["trials"] == 8
    (row,) = content["rows"]
    assert 1.2 < row["true_speedup"] < 1.6
    assert sum(row[name] for name in ("same", "tie", "half", "apart", "unseen")) == 1.0
