"""What `compare` says of two studies that were not asked the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from search_samples import SPACE, baseline, chain, engine, level, record, space

from spectune.cli.comparing import compare_two
from spectune.errors import SpectuneError
from spectune.search import Role, StudyFolder, TrialRecord, open_study
from spectune.space import Candidate

C4 = SPACE.replace("{concurrency: 8}", "{concurrency: 4}").replace("level: c8", "level: c4")
ALONE = SPACE.replace(", {minimize: ttft_p95_ms, level: c8}", "")


def launched(trial: int, candidate: Candidate, names: tuple[str, ...]) -> TrialRecord:
    made = record(trial, candidate, role=Role.CONFIRM)
    return replace(made, levels=tuple(level(name, 150.0 if candidate.speculative else 100.0) for name in names))


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)

    def make(name: str, text: str, names: tuple[str, ...], *candidates: Any) -> None:
        folder = StudyFolder(Path("studies") / name)
        open_study(folder, space(text), engine())
        for trial, candidate in enumerate(candidates * 3):
            folder.write_result(launched(trial, candidate, names))

    def compare(*sides: Any) -> dict[str, Any]:
        for name, side in zip(("old", "new"), sides, strict=True):
            make(name, *side)
        assert compare_two("old", "new", as_json=True) == 0
        return dict(json.loads(capsys.readouterr().out))

    return compare


BOTH = (SPACE, ("c1", "c8"), baseline(), chain(3))


def test_levels_of_one_study_alone_are_named(compared: Any) -> None:
    told = compared(BOTH, (C4, ("c1", "c4"), baseline(), chain(3)))
    assert told["levels"] == ["c1"]
    assert "not compared, since not both were measured there: c8 (only in old) and c4 (only in new)" in told["notes"]
    assert {row["level"] for pair in told["pairs"] for row in pair["levels"]} == {"c1"}


def test_other_objectives_make_other_recommendations(compared: Any) -> None:
    told = compared(BOTH, (ALONE, ("c1", "c8"), baseline(), chain(3)))
    said = next(note for note in told["notes"] if "other objectives" in note)
    assert said.endswith(
        "old by the geometric mean of decode speed at c1 and ttft p95 at c8 and new by decode speed at c1"
    )
    changed = next(one for one in told["changes"] if one["field"] == "space.objectives")
    assert changed["after"] == ["maximize decode_speed at c1"]


def test_a_study_without_an_answer_says_so(compared: Any) -> None:
    told = compared(BOTH, (SPACE, ("c1", "c8"), baseline()))
    assert [note for note in told["notes"] if "has no answer yet" in note] == [
        next(note for note in told["notes"] if note.startswith("new has no answer yet: Undecided"))
    ]
    assert told["next"] == "finish new first, which is undecided: `spectune report new` says what would do"


def test_two_studies_without_an_answer_are_both_named(compared: Any) -> None:
    told = compared((SPACE, ("c1", "c8"), baseline()), (SPACE, ("c1", "c8"), baseline()))
    assert told["next"] == "finish old and new first, which are undecided: `spectune report old` says what would do"


def test_alike_studies_need_no_such_note(compared: Any) -> None:
    (machine,) = compared(BOTH, BOTH)["notes"]
    assert "was measured in both" in machine


def test_a_path_without_a_study_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpectuneError, match=r"there is no study in .*/none: a study's folder holds a space\.yaml"):
        compare_two(str(tmp_path / "none"), "old", as_json=True)
