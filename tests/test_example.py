"""The example study that comes with the project: real launches, read and judged by this version."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path

import pytest
from forked import spectune
from readme_commands import ROOT

STUDY, REPORT = ROOT / "studies/example", ROOT / "reports/example.html"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(STUDY, tmp_path / "studies/example")
    return tmp_path


def answered(folder: Path, *words: str) -> str:
    done = spectune(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_records_still_say_what_its_files_say(copied: Path) -> None:
    kept = json.loads((STUDY / "summary.json").read_text())
    now = json.loads(answered(copied, "report", "example", "--json"))
    for key in (
        "verdict", "sentence", "details", "words", "speedup", "noise", "recommended", "pareto", "candidates",
        "in_question", "failures",
    ):  # fmt: skip
        assert now[key] == kept[key], key
    assert kept["simulated"] is False
    shown = html.unescape(re.sub(r"<[^>]+>", "", REPORT.read_text("utf-8")))
    assert " ".join(kept["sentence"].split()) in " ".join(shown.split())


def test_the_readme_shows_what_is_printed_of_it(copied: Path) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = readme.partition("[studies/example](studies/example):\n\n```\n")[2].partition("```")[0].splitlines()
    assert len(shown) > 10
    printed = [line.rstrip() for line in answered(copied, "breakeven", "example").splitlines()]
    for line in (line for line in shown if line != "…"):
        assert any(one == line or (line.endswith("…") and one.startswith(line[:-1])) for one in printed), line


def test_it_can_be_worked_with(copied: Path) -> None:
    assert "speculation pays" in answered(copied, "breakeven", "example")
    assert "launch-" in answered(copied, "export", "example", "--pick", "latency")


def test_it_names_no_folder_of_whoever_measured_it() -> None:
    for file in (REPORT, *(path for path in STUDY.rglob("*") if path.is_file())):
        assert not re.search(r"/root|/home/|/tmp/|/work/", file.read_text("utf-8")), file
