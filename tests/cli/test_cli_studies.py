"""`spectune studies`: a line for each."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from forked import spectune
from hypothesis import given
from hypothesis import strategies as st
from readme_commands import ROOT
from rich.console import Console

from spectune.cli.fitted_table import GAP, fit, fitted_table
from spectune.cli.studies_table import COLUMNS


def test_every_study_is_a_line(tmp_path: Path) -> None:
    studies = tmp_path / "studies"
    shutil.copytree(ROOT / "studies/example", studies / "example")
    (studies / "begun").mkdir()
    (studies / "begun/space.yaml").write_text("schema: 1\n")
    (studies / "broken/trials/0000-baseline").mkdir(parents=True)
    (studies / "broken/space.yaml").write_text("schema: 1\n")
    for name in ("summary.json", "trials/0000-baseline/result.json"):
        (studies / "broken" / name).write_text("{")
    heading, *lines = spectune("studies", cwd=tmp_path).stdout.splitlines()
    assert heading.split() == [column for one in COLUMNS for column in one.heading.split()]
    assert "best speculation" in heading, "whatever is recommended"
    summary = json.loads((studies / "example/summary.json").read_text())
    assert [line.split()[0] for line in lines] == ["begun", "broken", "example"]
    assert " no answer yet " in lines[0]
    assert f"{summary['speedup']['judged'][0]:.2f} (" in lines[2]
    for words in (summary["engine"], "speculate", summary["recommended"]["label"]):
        assert words in lines[2]
    told = json.loads(spectune("studies", "--json", cwd=tmp_path).stdout)
    assert [one["launches"] for one in told] == [0, 1, len(list((studies / "example/trials").glob("[0-9]*")))]
    assert (told[2]["speedup"], told[2]["verdict"]) == (summary["speedup"]["judged"], "speculation")
    assert told[2]["last_launch"] > "2026"


def test_no_studies_say_how_one_begins(tmp_path: Path) -> None:
    assert "`spectune search quickstart` begins one" in spectune("studies", cwd=tmp_path).stdout


def copy_of(studies: Path, name: str, finished: bool, made: int, *, own: bool = True) -> None:
    (studies / name).mkdir(parents=True)
    (studies / name / "space.yaml").write_text("schema: 1\n")
    (studies / name / "worker.json").write_text(json.dumps({"schema": 1, "study": "loc"}))
    (studies / name / "summary.json").write_text(json.dumps({"finished": finished, "verdict": "tie"}))
    for trial in range(made):
        folder = studies / name / "trials" / f"{trial:04d}"
        folder.mkdir(parents=True)
        (folder / "result.json").write_text("{}")
        if own:
            (folder / "launch.sh").touch()


def test_a_shared_study_is_one_line_with_its_workers(tmp_path: Path) -> None:
    studies = tmp_path / "studies"
    copy_of(studies, "loc", True, 6, own=False)
    copy_of(studies, "loc.worker2", True, 6)
    copy_of(studies, "loc.worker3", False, 5)
    (line,) = spectune("studies", cwd=tmp_path).stdout.splitlines()[1:]
    assert line.split()[:3] == ["loc", "(2", "workers)"]
    (told,) = json.loads(spectune("studies", "--json", cwd=tmp_path).stdout)
    assert (told["study"], told["workers"], told["launches"]) == ("loc", 2, 6)
    assert told["folders"] == ["studies/loc", "studies/loc.worker2", "studies/loc.worker3"]
    refused = spectune("report", "nowhere", cwd=tmp_path).stderr
    assert "(studies here: loc)" in refused


def test_a_shared_study_is_shown_as_the_copy_of_it_that_is_furthest(tmp_path: Path) -> None:
    copy_of(tmp_path / "studies", "loc", False, 3)
    copy_of(tmp_path / "studies", "loc.worker2", True, 6)
    (told,) = json.loads(spectune("studies", "--json", cwd=tmp_path).stdout)
    assert (told["study"], told["launches"], told["verdict"], told["workers"]) == ("loc.worker2", 6, "tie", 2)


LONG = (
    "a-study-whose-name-is-as-long-as-a-name-of-a-study-may-be-which-is-a-hundred-characters-" + 11 * "x",
    "SGLang 0.5.23 (cpu-reference)", "1024", "do not speculate so far", "EAGLE3 3/1/4 " + 80 * "w",
    "12.34 (11.11–13.33)", "2026-11-30 13:26",
)  # fmt: skip


def shown(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    said = io.StringIO()
    Console(file=said, width=width).print(fitted_table(COLUMNS, rows, width))
    return said.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 81, 96, 100, 120, 160, 1000])
def test_a_row_takes_one_line_at_any_width(width: int) -> None:
    lines = shown([LONG, ("short", "simulated", "3", "no answer yet", "", "", "")], width)
    assert len(lines) == 3
    assert max(len(line.rstrip()) for line in lines) <= width
    for kept in ("study", "launches", "verdict", "best speculation"):
        assert kept in lines[0]
    for whole in ("1024", "do not speculate so far", "12.34 (11.11–13.33)"):
        assert whole in lines[1]


def test_columns_are_left_out_in_the_order_that_help_tells(tmp_path: Path) -> None:
    left_out = [
        {column.heading for column in COLUMNS} - set(heads)
        for heads in (
            [COLUMNS[place].heading for place in fit(COLUMNS, [len(cell) for cell in LONG], width)]
            for width in range(400, 79, -1)
        )
    ]
    steps = [one for at, one in enumerate(left_out) if at == 0 or one != left_out[at - 1]]
    assert steps == [set(), {"engine"}, {"engine", "last launch"}, {"engine", "last launch", "recommended"}]
    told = " ".join(spectune("studies", "--help", cwd=tmp_path).stdout.split())
    assert "the engine, then the last launch, then the recommendation" in told


@given(st.lists(st.integers(1, 120), min_size=len(COLUMNS), max_size=len(COLUMNS)), st.integers(1, 400))
def test_widths_fit_or_nothing_more_can_be_cut(whole: list[int], width: int) -> None:
    widths = fit(COLUMNS, whole, width)
    assert all(1 <= wide <= whole[place] for place, wide in widths.items())
    uncut = [place for place in widths if COLUMNS[place].leaves is None]
    if sum(wide + GAP for wide in widths.values()) - GAP > width:
        assert list(widths) == uncut


def test_a_speedup_without_an_interval_is_a_figure(tmp_path: Path) -> None:
    folder = tmp_path / "studies/short"
    folder.mkdir(parents=True)
    (folder / "space.yaml").write_text("schema: 1\n")
    (folder / "summary.json").write_text(json.dumps({"finished": True, "speedup": {"judged": [1.2345, None, None]}}))
    _, line = spectune("studies", cwd=tmp_path).stdout.splitlines()
    assert line.split()[-1] == "1.23"
