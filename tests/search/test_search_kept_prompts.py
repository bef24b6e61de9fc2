"""A study goes on with the prompts it was begun with, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from search_simulated import write

from spectune.bench.prompt_sources import open_workload
from spectune.engines.open import open_engine
from spectune.errors import SpectuneError
from spectune.search import StudyFolder, open_study
from spectune.search.storage.kept_prompts import PROMPTS_FILE, kept_prompts, refuse_other_prompts
from spectune.space import load_space

LINES = '{"prompt": "one"}\n{"prompt": "two"}\n'


@pytest.fixture
def begun(tmp_path: Path) -> StudyFolder:
    (tmp_path / "asked.jsonl").write_text(LINES)
    folder = StudyFolder(tmp_path / "study")
    folder.begin("", "", None, kept_prompts(open_workload("asked.jsonl", tmp_path)))
    return folder


def test_the_same_file_goes_on_and_another_does_not(begun: StudyFolder, tmp_path: Path) -> None:
    refuse_other_prompts(begun, open_workload("asked.jsonl", tmp_path))
    (tmp_path / "asked.jsonl").write_text(LINES + '{"prompt": "three"}\n')
    with pytest.raises(SpectuneError, match=r"the prompts asked\.jsonl are not those that the study study was begun"):
        refuse_other_prompts(begun, open_workload("asked.jsonl", tmp_path))


def test_a_study_that_kept_nothing_goes_on(begun: StudyFolder, tmp_path: Path) -> None:
    (begun.root / PROMPTS_FILE).unlink()
    (tmp_path / "asked.jsonl").write_text(LINES * 2)
    refuse_other_prompts(begun, open_workload("asked.jsonl", tmp_path))


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"sha256": {}}', '{"sha256": 3}'])
def test_what_is_damaged_is_named(begun: StudyFolder, tmp_path: Path, damage: str) -> None:
    (begun.root / PROMPTS_FILE).write_text(damage)
    with pytest.raises(SpectuneError, match=r"prompts\.json is damaged"):
        refuse_other_prompts(begun, open_workload("asked.jsonl", tmp_path))


def test_a_study_begins_with_them_only_where_they_are_files(tmp_path: Path) -> None:
    space = load_space(write(tmp_path))
    folder = StudyFolder(tmp_path / "study")
    open_study(folder, space, open_engine(space))
    assert folder.belonging(PROMPTS_FILE) is None
