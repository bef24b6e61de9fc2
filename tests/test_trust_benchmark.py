"""The trust benchmark as it is called; what it finds is for whoever runs it with enough studies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from readme_commands import ROOT

FIELDS = {"false_recommendation", "missed_winner", "coverage", "speedup_bias", "studies"}


def test_it_tells_fractions_per_profile_and_in_all(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    done = subprocess.run(
        [
            sys.executable, "-m", "benchmarks.verdicts", "--profile", "benchmarks/profiles/quiet-115.yaml",
            "--space", "benchmarks/trust_space.yaml", "--studies", "1", "--json", str(table),
        ],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    content = json.loads(table.read_text())
    assert content["total"].keys() == FIELDS
    (row,) = content["rows"]
    assert row.keys() == FIELDS | {"true_speedup", "profile"}
    assert row["true_speedup"] == pytest.approx(1.15, abs=0.001)
    assert (row["studies"], row["false_recommendation"], row["missed_winner"]) == (1, 0.0, 0.0)
