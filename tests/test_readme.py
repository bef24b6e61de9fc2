"""What the README promises about its commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from forked import spectune
from readme_commands import ROOT, SPECTUNE, blocks, main_command, spectune_commands

from spectune.space import load_space

README = (ROOT / "README.md").read_text("utf-8")
# The main job and what needs its study are run by test_end_to_end.py.
NEEDING_NO_STUDY = ("breakeven", "engine", "explain", "profiles", "simulate")
SIMULATED = [c[c.index("--study") + 1] for c in spectune_commands() if "simulated" in c]
ON_SIMULATED = [
    c for c in spectune_commands() if "simulated" in c or any(s in "/".join(c).split("/") for s in SIMULATED)
]
ALONE = [c for c in spectune_commands() if (c[0] in NEEDING_NO_STUDY and "quickstart" not in c) or "--dry-run" in c]
(ARITHMETIC,) = [c for c in spectune_commands() if c[0] == "breakeven" and "--baseline" in c]


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return spectune(*arguments, cwd=folder)


def test_the_first_two_blocks_are_the_two_commands() -> None:
    first, second = blocks()[:2]
    assert first.strip() == (
        "python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/spectune search search_spaces/quickstart.yaml"
    )
    assert second.strip() == ".venv/bin/pip install -e '.[test]' && .venv/bin/pytest"


def test_every_command_is_run_somewhere() -> None:
    here = [c[0] for c in ALONE]
    end_to_end = ["search", "studies", "report", "export", "calibrate", "breakeven"]
    assert all(
        c in ALONE or c in ON_SIMULATED or c[0] in [*end_to_end, "diagnose", "doctor", "init"]
        for c in spectune_commands()
    )
    assert {"breakeven", "engine", "search"} <= set(here)


@pytest.mark.engine
@pytest.mark.usefixtures("cpu_runtime")
@pytest.mark.parametrize("arguments", ALONE, ids=" ".join)
def test_commands_that_need_no_study(arguments: list[str], tmp_path: Path) -> None:
    done = run(arguments, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_shown_diagnosis_is_what_is_printed() -> None:
    (call,) = [c for c in spectune_commands() if c[0] == "diagnose"]
    done = run(call, ROOT)
    assert done.returncode == 0, done.stderr
    shown = README.partition("with the poor drafter (paths shortened):\n\n```\n")[2].partition("```")[0].splitlines()
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    for line in (line for line in shown if line != "…"):
        assert any(one == line or one.startswith(line.removesuffix("…")) for one in printed), line


def test_a_space_of_your_own(tmp_path: Path) -> None:
    (call,) = [c for c in spectune_commands() if c[0] == "init"]
    done = run(call, tmp_path)
    assert done.returncode == 0, done.stderr
    (written,) = tmp_path.iterdir()
    assert run(["search", str(written), "--dry-run"], tmp_path).returncode == 0


def test_studies_on_simulated_machines_and_what_is_done_with_them(tmp_path: Path) -> None:
    """In the README's order, in one folder."""
    for arguments in ON_SIMULATED:
        done = run(arguments, tmp_path)
        assert done.returncode == 0, (arguments, done.stderr)
        assert "SIMULATED" in done.stdout or arguments[0] == "export"
    assert all((tmp_path / "studies" / study / "summary.json").is_file() for study in SIMULATED)


@pytest.mark.parametrize("arguments", [c for c in spectune_commands() if c[0] == "doctor"], ids=" ".join)
def test_doctor_says_whether_a_search_can_run(arguments: list[str], tmp_path: Path) -> None:
    done = run(arguments, tmp_path)
    assert done.returncode in (0, 1), done.stderr  # what it finds is this machine's affair
    assert done.stdout.splitlines()[-1].startswith("a search ")
    assert list(tmp_path.iterdir()) == []


def test_the_shown_arithmetic_is_what_is_printed(tmp_path: Path) -> None:
    assert run(ARITHMETIC, tmp_path).stdout in README


def test_the_number_of_launches_is_the_budget() -> None:
    words = {8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}
    trials = load_space(ROOT / main_command()[1]).budget.trials
    assert trials in words
    assert f"launches it {words[trials]} times" in README


def test_links_and_paths_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_json_is_json(tmp_path: Path) -> None:
    assert json.loads(run([*ARITHMETIC, "--json"], tmp_path).stdout)["break_even"] == pytest.approx(2.46)


def test_shipped_spaces_load_and_the_tour_is_small_enough() -> None:
    for file in sorted((ROOT / "search_spaces").glob("*.yaml")):
        load_space(file)
    assert (load_space(ROOT / "search_spaces/quickstart.yaml").budget.trials or 99) <= 12


def test_spectune_is_installed_beside_this_interpreter() -> None:
    assert os.access(SPECTUNE, os.X_OK)
