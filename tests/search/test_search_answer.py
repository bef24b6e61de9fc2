"""What a study delivers, also when files beside its records are gone or damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from forked import spectune
from search_samples import SPACE, baseline, chain, engine, record, space
from typer.testing import CliRunner

from spectune.answer import deliver, export_answer, remembered_stop
from spectune.cli.app import app
from spectune.errors import SpectuneError
from spectune.export import Format
from spectune.search import Stop, StudyFolder, TrialRecord, open_study
from spectune.search.answer.sentence import UNCONFIRMED
from spectune.search.storage.steps import Role
from spectune.serving import FailureClass

RECORDS = [record(0, baseline()), record(1, chain(3), 160.0, accept=2.4, ttft_ms=90.0)]


def study(folder: Path, records: list[TrialRecord]) -> StudyFolder:
    opened = StudyFolder(folder / "studies/small")
    open_study(opened, space(), engine())
    for one in records:
        opened.write_result(one)
    return opened


def test_everything_is_written_and_says_the_same(tmp_path: Path) -> None:
    folder = study(tmp_path, RECORDS)
    answer = deliver(folder, space(), RECORDS, Stop("enough"), report_file=tmp_path / "report.html")
    assert answer.recommended_file is not None
    assert answer.recommended_file.stat().st_mode & 0o111
    script = answer.recommended_file.read_text()
    assert "--speculative" not in script or "160.0 tok/s" in script
    assert json.loads(folder.summary_file.read_text())["recommended"]["trial"] == 1
    assert answer.summary.sentence in answer.report.read_text()
    assert remembered_stop(folder) == Stop("enough")


def test_what_no_relaunch_bears_out_says_so_in_its_files_and_beside_them(tmp_path: Path) -> None:
    """In SGLang's table of steps too, which has no pick to say it."""
    confirmed = [*RECORDS, record(2, baseline(), role=Role.CONFIRM), record(3, chain(3), 160.0, role=Role.CONFIRM)]
    formats = [Format.SHELL, Format.CONFIG, Format.ADAPTIVE]
    for number, (records, warned) in enumerate([(RECORDS, True), (confirmed, False)]):
        folder = study(tmp_path / str(number), records)
        answer = deliver(folder, space(), records, None, report_file=tmp_path / "report.html")
        for one in export_answer(folder, space(), records, answer.summary, formats=formats):
            (script,) = [path for form, path in one.files.items() if form is Format.SHELL]
            told = f"{UNCONFIRMED}; to launch it again beside the best baseline: spectune check {script}"
            assert (told in one.notes) is warned
            assert set(one.files) >= set(formats[:2])
            for file in one.files.values():
                kept = told.replace(str(script), f"studies/small/export/{script.name}")
                assert (kept in file.read_text()) is warned, file


def test_files_do_not_depend_on_how_the_folder_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = study(tmp_path, RECORDS)
    monkeypatch.chdir(tmp_path)
    found = []
    for name in ("small", "./studies/small", str(folder.root), "studies/../studies/small/"):
        assert CliRunner().invoke(app, ["report", name]).exit_code == 0
        found.append({file.name: file.read_text() for file in folder.exports.iterdir()})
    assert found == found[:1] * 4
    moved = tmp_path / "archive/small"
    moved.parent.mkdir()
    folder.root.rename(moved)
    assert CliRunner().invoke(app, ["report", "archive/small"]).exit_code == 0
    assert any(f"spectune check {moved}/export/" in file.read_text() for file in (moved / "export").iterdir())


def test_a_study_that_may_only_be_read_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a file keeps everybody from its folder of launch files, also who may write to anything."""
    folder = study(tmp_path, RECORDS)
    folder.exports.write_text("no folder")
    monkeypatch.chdir(tmp_path)
    for words in ([], ["--json"], ["-o", "mine.html"]):
        done = CliRunner().invoke(app, ["report", "small", *words])
        assert done.exit_code == 0, done.output
        assert done.stderr.count("note: the launch files of study small were not renewed: ") == 1
        assert "not renewed" not in done.stdout
    assert (tmp_path / "reports/small.html").read_text()
    assert (tmp_path / "mine.html").is_file()
    with pytest.raises(SpectuneError, match="no folder"):
        deliver(folder, space(), RECORDS, None)


def test_page_and_answer_do_not_go_to_one_place(tmp_path: Path) -> None:
    study(tmp_path, RECORDS)
    for there in ("/dev/stdout", "-"):
        done = spectune("report", "small", "-o", there, "--json", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"the page cannot go to {there} too; name a file with -o" in done.stderr


def test_every_launch_that_speculates_has_its_table_of_steps_or_the_reason_why_not(tmp_path: Path) -> None:
    records = [*RECORDS, record(2, chain(2), 155.0, accept=2.2, ttft_ms=70.0), record(3, chain(2, proto="LL"), 150.0)]
    folder = study(tmp_path, records)
    answer = deliver(folder, space(), records, None, report_file=tmp_path / "report.html")
    summary = replace(answer.summary, pareto=[1, 2, 3])
    found = {one.trial: one for one in export_answer(folder, space(), records, summary, formats=[Format.ADAPTIVE])}
    assert [Format.ADAPTIVE in found[trial].files for trial in (1, 2, 3)] == [True, True, False]
    assert "nothing without speculation was measured" in found[3].refused[Format.ADAPTIVE]


def test_a_pick_that_no_relaunch_bears_out_says_so_and_how_to_check_it(tmp_path: Path) -> None:
    folder = study(tmp_path, RECORDS)
    answer = deliver(folder, space(), RECORDS, None, report_file=tmp_path / "report.html")
    (one,) = export_answer(folder, space(), RECORDS, answer.summary, pick="latency")
    assert one.notes[0].startswith("picked for latency")
    assert one.notes[1] == f"{UNCONFIRMED}; to launch it again beside the best baseline: spectune check {one.shell}"
    formats = [Format.CONFIG]
    (other,) = export_answer(folder, space(), RECORDS, answer.summary, pick="latency", formats=formats)
    assert other.notes[1].endswith("with --format sh, too, there is a script that `spectune check` launches again")


def test_a_pick_that_is_another_launch_by_now_stays_and_is_said(tmp_path: Path) -> None:
    folder, report = study(tmp_path, RECORDS), tmp_path / "report.html"
    before = deliver(folder, space(), RECORDS, None, report_file=report)
    for need in ("latency", "balanced"):
        export_answer(folder, space(), RECORDS, before.summary, pick=need)
    assert deliver(folder, space(), RECORDS, None, report_file=report).outdated == []
    more = [*RECORDS, record(2, chain(2), 220.0, accept=2.9, ttft_ms=60.0)]
    after = deliver(folder, space(), more, None, report_file=report)
    assert [path.name for path in after.outdated] == [
        "launch-balanced.sh", "launch-balanced.yaml", "launch-latency.sh", "launch-latency.yaml",
    ]  # fmt: skip
    export_answer(folder, space(), more, after.summary, pick="latency")
    assert len(deliver(folder, space(), more, None, report_file=report).outdated) == 2


@pytest.mark.parametrize("records", [RECORDS, RECORDS[:1], [record(0, baseline(), failure=FailureClass.CRASH)]])
@pytest.mark.parametrize("content", [None, "", "{", "[]", "3", '{"stop": {}}', '{"stop": 3}', '{"engine": 5}'])
def test_damaged_files_beside_the_records_cost_nothing(
    records: list[TrialRecord], content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = study(tmp_path, records)
    monkeypatch.chdir(tmp_path)
    for path in (folder.root / "environment.json", folder.summary_file):
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(content)
    for command in (["report", "small"], ["report", "small", "--json"], ["studies"], ["studies", "--json"]):
        done = CliRunner().invoke(app, command)
        assert (done.exit_code, done.exception) == (0, None), done.output
    assert (tmp_path / "reports/small.html").is_file()


def test_the_sample_space_is_what_the_study_keeps(tmp_path: Path) -> None:
    assert study(tmp_path, []).space_file.read_text() == SPACE
