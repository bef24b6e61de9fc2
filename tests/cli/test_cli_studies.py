"""`spectune studies`: a line for each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from forked import spectune
from readme_commands import ROOT


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
    assert heading.split() == ["study", "engine", "launches", "verdict", "recommended", "speedup", "last", "launch"]
    summary = json.loads((studies / "example/summary.json").read_text())
    assert [line.split()[0] for line in lines] == ["begun", "broken", "example"]
    assert "no answer yet (not finished)" in lines[0]
    assert f"{summary['speedup']['judged'][0]:.2f} (" in lines[2]
    for words in (summary["engine"], "speculate", summary["recommended"]["label"]):
        assert words in lines[2]
    told = json.loads(spectune("studies", "--json", cwd=tmp_path).stdout)
    assert [one["launches"] for one in told] == [0, 1, len(list((studies / "example/trials").glob("[0-9]*")))]
    assert (told[2]["speedup"], told[2]["verdict"]) == (summary["speedup"]["judged"], "speculation")
    assert told[2]["last_launch"] > "2026"


def test_no_studies_say_how_one_begins(tmp_path: Path) -> None:
    assert "`spectune search quickstart` begins one" in spectune("studies", cwd=tmp_path).stdout
