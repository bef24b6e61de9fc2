"""What stands in the place of a study's files and folders without being one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from search_samples import baseline, chain, record

from spectune import files
from spectune.errors import SpectuneError
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.steps import Role, Step

STEP = Step(0, Role.BASELINE, baseline(), "x")


def test_a_pipe_in_the_place_of_a_record_is_not_waited_for(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    pipe = folder.open_trial(STEP) / "result.json"
    os.mkfifo(pipe)
    with pytest.raises(SpectuneError, match=f"cannot read {pipe}: it is a folder, a device or a pipe"):
        folder.records()


def test_a_pipe_in_the_place_of_the_space_is_not_waited_for(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.space_file.write_text("schema: 1\n")
    os.mkfifo(folder.resolved_file)
    with pytest.raises(SpectuneError, match=f"cannot read {folder.resolved_file}"):
        folder.space()


def test_what_has_the_place_of_a_launchs_folder_is_named_and_left_alone(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    place = folder.trial_folder(0, Role.BASELINE)
    place.parent.mkdir()
    os.mkfifo(place)
    with pytest.raises(SpectuneError, match=f"{place} is no folder"):
        folder.open_trial(STEP)
    assert place.is_fifo()


def test_a_study_whose_folder_is_a_link_in_a_circle_has_a_name_and_no_records(tmp_path: Path) -> None:
    (tmp_path / "sim").symlink_to("sim")
    folder = StudyFolder(tmp_path / "sim")
    assert folder.name == "sim"
    with pytest.raises(SpectuneError, match="there is no study sim"):
        folder.require()
    with pytest.raises(SpectuneError, match="a link that leads to no folder"):
        folder.lock()


def test_nothing_is_made_where_a_link_leads_to_a_disk_that_is_not_there(tmp_path: Path) -> None:
    studies, elsewhere = tmp_path / "studies", tmp_path / "disk"
    studies.symlink_to(elsewhere)
    with pytest.raises(SpectuneError, match=f"{studies} is a link that leads to no folder"):
        StudyFolder(studies / "sim").write_result(record(1, chain(3)))
    assert not elsewhere.exists()


def test_a_folder_that_is_a_link_is_used(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "studies").symlink_to("disk")
    files.write_whole(tmp_path / "studies/sim/space.yaml", "x")
    assert (tmp_path / "disk/sim/space.yaml").read_text() == "x"


def test_launches_that_cannot_be_seen_are_not_taken_for_none(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    assert folder.records() == []
    (tmp_path / "trials").write_text("a disk's worth of zeros")
    with pytest.raises(SpectuneError, match=f"cannot look into {tmp_path / 'trials'}"):
        folder.records()


def test_launches_whose_space_is_gone_are_no_new_study(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.write_result(record(1, chain(3)))
    with pytest.raises(SpectuneError, match=r"holds launches, but its space\.yaml is gone"):
        folder.begin("schema: 1", "schema: 1", None, {})
    assert not folder.exists()


def test_where_nobody_may_look_is_said_with_what_helps(tmp_path: Path) -> None:
    """A name that is too long stands for a folder that may not be entered: the tests may belong to root."""
    folder = StudyFolder(tmp_path / ("a" * 300))
    for look in (folder.exists, folder.space, lambda: StudyFolder.named(str(folder.root))):
        with pytest.raises(SpectuneError, match=r"cannot look for .*: File name too long; its folders have to be ones"):
            look()
