"""The replay of measured tables as it is called, with tables made here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forked import python_m
from readme_commands import ROOT

HEADER = "# where it is from\ntarget_model,batch_size,steps,topk,num_draft_tokens,draft,output_tok_s,accept_length\n"
LENGTHS = {1: 1.7, 2: 2.2, 3: 2.55, 4: 2.8, 5: 2.95, 6: 3.05, 7: 3.1}
BREADTH = {1: 1.0, 4: 1.15}
# Kimi-K2-Instruct on math500 (SpecBundle, sgl-project/SpecForge docs/spec_bundle)
MEASURED = """\
m,8,0,0,0,baseline,492.06,1.0000
m,8,3,1,4,org/eagle3,877.21,3.4681
m,8,5,1,6,org/eagle3,995.88,4.6102
m,8,5,3,6,org/eagle3,772.61,3.5278
m,8,7,1,8,org/eagle3,1022.73,5.3831
m,8,7,4,8,org/eagle3,649.08,3.1436
"""


def replayed(folder: Path, *options: str) -> dict[str, Any]:
    done = python_m("benchmarks.replay", "--tables", folder, "--json", *options, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(draft: str, shapes: list[tuple[int, int, int]], misspelled: str = "") -> str:
    """A drafter at batch size 8 whose cycle grows with steps and tokens."""
    lines = ["m,8,0,0,0,baseline,500,1.0"]
    for at, (steps, topk, tokens) in enumerate(shapes):
        length = LENGTHS[steps] * (BREADTH[topk] if topk > 1 else 1.0)
        speed = 8000 * length / (15 + steps * 0.9 + 0.25 * tokens)
        lines.append(
            f"m,8,{steps},{topk},{tokens},{misspelled if misspelled and not at else draft},{speed:.1f},{length}"
        )
    return "\n".join(lines) + "\n"


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    chains = [(steps, 1, steps + 1) for steps in (1, 2, 3, 5, 7)]
    grid = [(s, 1, s + 1) for s in range(1, 8)] + [(s, 4, n) for s in range(2, 8, 2) for n in (8, 16)]
    (tmp_path / "chains.csv").write_text(HEADER + table("org/SpecForge", chains, "org/Spec for ge"), "utf-8")
    (tmp_path / "grid.csv").write_text(HEADER + table("org/drafter", grid), "utf-8")
    (tmp_path / "accepted.csv").write_text("model,position,accepted\nm,1,0.8\n", "utf-8")
    (tmp_path / "notes.txt").write_text("no table\n", "utf-8")
    return tmp_path


def test_groups_are_replayed_and_others_listed(tables: Path) -> None:
    found = replayed(tables)
    skipped, chains, grid = found["rows"]
    assert skipped == {"group": "accepted.csv", "skipped": "no column for batch, steps, topk, tokens, speed"}
    assert (chains["rows"], grid["rows"], found["groups"]) == (5, 13, 2)
    assert chains["regret_after"] == sorted(chains["regret_after"], reverse=True)
    assert chains["regret_after"][-1] == grid["regret_after"][-1] == 0.0
    assert found["mean_regret_after_2_of_5"] <= 0.015
    assert found["mean_regret_after_a_third_of_12_or_more"] <= 0.01


def test_the_second_row_is_a_chain_where_tight_trees_lose(tmp_path: Path) -> None:
    (tmp_path / "measured.csv").write_text(HEADER + MEASURED, "utf-8")
    (group,) = replayed(tmp_path)["rows"]
    assert group["rows"] == 5
    assert group["regret_after"][1] <= 0.01, "a tight tree second would leave 0.0263"


def test_other_samplers_replay_too(tables: Path) -> None:
    assert replayed(tables, "--sampler", "random", "--seeds", "3")["sampler"] == "random"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = python_m("benchmarks.replay", "--tables", tmp_path / "missing", cwd=ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    assert "missing" in done.stderr
