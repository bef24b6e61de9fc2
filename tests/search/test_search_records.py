"""What is written down, and what becomes of it when it is damaged."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from search_samples import baseline, chain, record, space

from spectune import files
from spectune.engines.protocol import Mismatch
from spectune.errors import SpectuneError
from spectune.machine import Difference
from spectune.search import open_study
from spectune.search.storage.book import LocalBook
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.serving import FailureClass


@pytest.mark.parametrize(
    "original",
    [
        record(0, baseline()),
        record(7, chain(3), 88.5, accept=2.2),
        record(3, chain(1), failure=FailureClass.MEMORY),
        record(4, chain(2), suspect=[Mismatch("page-size", 1, 64)]),
        record(9, chain(2), role=Role.CONFIRM),
        record(10, chain(2), place="host-a/0-3"),
    ],
)
def test_a_record_reads_back_as_it_was(original: TrialRecord, tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.open_trial(Step(original.trial, original.role, original.candidate, original.why))
    folder.write_result(original)
    assert folder.records() == [original]
    assert folder.interrupted() == []


def test_nothing_is_written_into_a_folder_that_took_the_place_of_the_studys(tmp_path: Path) -> None:
    """As where a study is removed while it runs, and begun again."""
    folder = StudyFolder(tmp_path / "sim")
    folder.root.mkdir()
    with folder.lock():
        book = LocalBook(folder, space())
        folder.root.rename(tmp_path / "removed")
        with pytest.raises(SpectuneError, match="removed, moved or replaced while this search ran"):
            asyncio.run(_made(book))
        folder.root.mkdir()
        with folder.lock(), pytest.raises(SpectuneError, match="removed, moved or replaced"):
            asyncio.run(_made(book))
    assert [path.name for path in folder.root.iterdir()] == [".lock"]


async def _made(book: LocalBook) -> None:
    async with book.claimed(Step(0, Role.BASELINE, baseline(), "first")):
        await book.finish(record(0, baseline()))


def test_the_contract_of_result_json() -> None:
    content = record(3, chain(1), failure=FailureClass.HANG).to_json()
    assert content["schema"] == 1
    assert content["failure_class"] == "hang"
    assert content["candidate_id"] == chain(1).candidate_id
    ok = record(1, chain(2), accept=2.0).to_json()
    assert {"schema", "trial", "role", "launch_index", "status", "suspect", "startup_s", "levels"} <= ok.keys()
    entry = ok["levels"][0]
    assert {"level", "n_requests", "failed", "per_position", "ttft_p95_ms", "graph_used"} <= entry.keys()
    assert all(len(entry[name]) == 3 for name in ("accept_length", "cycle_ms", "decode_speed", "output_throughput"))
    assert ok["seconds"]["own"] == pytest.approx(40 - 12 - 20 - 2)


def test_a_finished_launch_is_never_overwritten(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.write_result(record(1, chain(3)))
    with pytest.raises(SpectuneError, match="never overwritten"):
        folder.open_trial(Step(1, Role.SEARCH, chain(2), "by mistake"))
    assert folder.records() == [record(1, chain(3))]


def test_two_records_of_one_number_are_both_named(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.write_result(record(1, chain(3)))
    folder.write_result(record(1, chain(3), role=Role.CONFIRM))
    with pytest.raises(SpectuneError, match=r"0001-confirm.*0001"):
        folder.records()


def test_an_interrupted_launch_that_cannot_be_read_is_left_to_the_plan(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    (folder.open_trial(Step(0, Role.BASELINE, baseline(), "x")) / "candidate.json").write_text("rubbish")
    assert folder.interrupted() == []


def test_a_launch_that_was_begun_and_not_finished_is_known(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    begun = Step(2, Role.SEARCH, chain(4), "why not")
    (folder.open_trial(begun) / "server.log").write_text("half")
    assert folder.interrupted() == [begun]
    assert not (folder.open_trial(begun) / "server.log").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a spectune record"),
        ('{"schema": 99}', "upgrade spectune"),
        ('{"schema": 1}', "is damaged"),
        (json.dumps(record(0, baseline()).to_json() | {"trial": "0"}), "whole number"),
        (json.dumps(record(0, baseline()).to_json() | {"seconds": {"startup": "x"}}), "must be a number"),
        (json.dumps(record(0, baseline()).to_json() | {"command": {"argv": [1], "env": {}, "unset": []}}), "string"),
        (json.dumps(record(0, baseline()).to_json() | {"values": {"speculative-num-steps": 3}}), "changed on disk"),
    ],
)
def test_a_damaged_record_is_one_sentence_with_its_file(content: str, words: str, tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    path = folder.trial_folder(0, Role.BASELINE) / "result.json"
    files.write_whole(path, content)
    with pytest.raises(SpectuneError, match=words) as raised:
        folder.records()
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("level", ["c1"]), ("n_requests", "8"), ("cycle_ms", None), ("decode_speed", "nan"), ("prompt_tokens", ""),
        ("ttft_p95_ms", True), ("inter_chunk_ms", []), ("graph_used", {}), ("per_position", [0.5, "x"]),
        ("requests_by_context", {"0-255": {}}), ("accept_length", [1.0, 2.0, 3.0]), ("notes", [1]),
    ],
)  # fmt: skip
def test_a_figure_of_another_type_is_refused_where_it_is_read(name: str, value: object) -> None:
    content = record(0, chain(3)).to_json()
    content["levels"][0][name] = value
    with pytest.raises(SpectuneError, match=r"result\.json is damaged .*but got"):
        TrialRecord.from_json(content, "result.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [("cycle_ms", [0.0, 0.0, 0.0]), ("accept_length", [0.0, None, None]), ("decode_speed", [-1.0, -2.0, -1.0]),
     ("decode_speed", [1e200, 1e200, 1e200]), ("n_requests", -5), ("ttft_p95_ms", -1e9)],
)  # fmt: skip
def test_a_figure_that_cannot_be_is_refused_where_it_is_read(name: str, value: object) -> None:
    content = record(0, chain(3)).to_json()
    content["levels"][0][name] = value
    with pytest.raises(SpectuneError, match=rf"result\.json is damaged .*{name} cannot be"):
        TrialRecord.from_json(content, "result.json")


def test_a_launch_takes_no_negative_time() -> None:
    content = record(0, chain(3)).to_json()
    content["seconds"]["total"] = -1e12
    with pytest.raises(SpectuneError, match="a time cannot be"):
        TrialRecord.from_json(content, "result.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("effective", {"graph_batches": {}, "kv_tokens": "", "max_running_requests": None, "backends": {}}),
        ("environment_reached", [{"name": "A", "wanted": None, "workers": "<b>", "of": 1}]),
        ("environment_changes", [{"field": "a", "before": 1, "after": 2, "matters": "no"}]),
        ("suspect", [{"field": 1, "wanted": 1, "got": 2}]),
    ],
)
def test_what_stands_beside_the_figures_has_its_type_too(name: str, value: object) -> None:
    with pytest.raises(SpectuneError, match=r"result\.json is damaged .*must be"):
        TrialRecord.from_json(record(0, chain(3)).to_json() | {name: value}, "result.json")


def test_a_record_whose_candidate_was_edited_is_refused(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.write_result(record(0, chain(3)))
    path = folder.trial_folder(0, Role.SEARCH) / "result.json"
    content = json.loads(path.read_text())
    content["values"]["speculative-num-steps"] = 2
    path.write_text(json.dumps(content))
    with pytest.raises(SpectuneError):
        folder.records()


def test_changes_of_the_machine_stay_with_the_launch_they_were_seen_in() -> None:
    change = Difference("gpus.devices.GPU-1.power_limit_w", 700.0, 500.0, matters=True, why="clocks follow")
    changed = replace(record(1, chain(2)), environment_changes=(change,))
    content = json.loads(json.dumps(changed.to_json()))
    assert TrialRecord.from_json(content, "x").environment_changes == (change,)
    del content["environment_changes"]  # as an older spectune wrote it
    assert TrialRecord.from_json(content, "x").environment_changes == ()


def test_another_space_under_the_same_name_is_refused(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "s")
    from search_samples import SPACE, engine

    open_study(folder, space(), engine())
    open_study(folder, space(), engine())
    with pytest.raises(SpectuneError, match="--study NAME"):
        open_study(folder, space(SPACE.replace("intel_amx", "torch_native")), engine())
    assert json.loads((folder.root / "environment.json").read_text())["schema"] == 2


def test_two_spectunes_never_run_one_study(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    lock = folder.lock()
    program = (
        "import sys; from pathlib import Path; from spectune.search.storage.folder import StudyFolder\n"
        "try: StudyFolder(Path(sys.argv[1])).lock()\n"
        "except Exception as error: print(error)"
    )
    second = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "another spectune is running" in second.stdout
    lock.release()
    third = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert third.stdout == ""


@pytest.mark.parametrize("name", ["", "a/b", "..", "-x", "a b", "x" * 101, "/tmp", "./"])
def test_names_that_are_no_folder_names_are_refused(name: str) -> None:
    with pytest.raises(SpectuneError):
        StudyFolder.named(name)


def test_a_disk_that_takes_no_more_keeps_the_old_file(tmp_path: Path) -> None:
    program = (
        "import resource, signal, sys; from pathlib import Path; from spectune import files\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: files.write_whole(Path(sys.argv[1]), 'x' * 5000)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    target = tmp_path / "result.json"
    files.write_whole(target, "old")
    ran = subprocess.run([sys.executable, "-c", program, str(target)], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("SpectuneError cannot write")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "kept" / "real.html", tmp_path / "report.html"
    link.symlink_to(real)
    files.write_whole(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_nothing_takes_the_place_of_what_is_no_file(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link, tmp_path):
        with pytest.raises(SpectuneError, match="a folder, a device or a pipe"):
            files.write_whole(path, "new")
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [link, pipe]


def test_a_launch_that_was_interrupted_knows_its_place_and_older_files_have_none(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    begun = Step(2, Role.SEARCH, chain(4), "why not", "host-a")
    started = folder.open_trial(begun) / "candidate.json"
    assert folder.interrupted() == [begun]
    content = files.read_json(started)
    del content["place"]
    files.write_json(started, content)
    assert folder.interrupted() == [replace(begun, place="")]
    older = record(1, chain(2), place="x").to_json()
    del older["place"]
    assert TrialRecord.from_json(older, "result.json").place == ""
