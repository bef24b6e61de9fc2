"""`export`, `compare` and `check` on finished studies, as users call them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
import yaml
from forked import spectune
from readme_commands import SPECTUNE
from search_samples import SPACE as REAL_SPACE
from search_samples import baseline, chain, record
from search_simulated import SPACE, write
from typer.testing import CliRunner

from spectune import files
from spectune.cli.app import app
from spectune.engines.protocol import Mismatch
from spectune.errors import SpectuneError
from spectune.search import StudyFolder, TrialRecord
from spectune.serving import FailureClass


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr


def refuses(words: list[str], folder: Path, *said: str) -> None:
    """The same in this process, which is quicker."""
    with contextlib.chdir(folder):
        error = CliRunner().invoke(app, words).exception
    assert isinstance(error, SpectuneError), error
    for word in said:
        assert word in str(error)


def real_study(folder: Path, records: list[TrialRecord], name: str = "real") -> StudyFolder:
    """A study that a real engine could have left, with these launches."""
    study = StudyFolder(folder / "studies" / name)
    study.begin(REAL_SPACE, REAL_SPACE, {"schema": 2, "engine": "SGLang 0.5.23"}, {})
    for one in records:
        study.write_result(one)
    return study


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished study in virtual time, and a copy of it on a slower machine with another drafter."""
    folder = tmp_path_factory.mktemp("studied")
    chains = {**SPACE["search"], "speculative-eagle-topk": 1}
    write(folder, search=chains, budget={"trials": 10})
    assert spectune("search", "sim.yaml", cwd=folder).returncode == 0
    slower = yaml.safe_load((folder / "quick.yaml").read_text())
    slower["target"]["step_ms"]["graph"] = 2.5
    (folder / "quick.yaml").write_text(yaml.safe_dump(slower))
    assert spectune("search", "sim.yaml", "--study", "slower", cwd=folder).returncode == 0
    return folder


@pytest.fixture
def copied(studied: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    shutil.copytree(studied / "studies", tmp_path / "studies")
    return tmp_path


def exported(folder: Path, pick: str = "latency", study: str = "sim") -> Path:
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, ["export", study, "--pick", pick, "--json"])
    assert done.exit_code == 0, done.exception
    return folder / json.loads(done.stdout)[0]["shell"]


def edit_profile(folder: Path, old: str, new: str, study: str = "sim") -> None:
    path = folder / "studies" / study / "profile.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_every_format_is_written_and_the_answer_leaves_a_pick_alone(copied: Path) -> None:
    folder = copied / "studies/sim/export"
    before = {path: path.read_bytes() for path in folder.iterdir()}
    done = spectune("export", "sim", "--pick", "latency", "--format", "sh,yaml,compose,adaptive", "--json", cwd=copied)
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout)
    assert list(entry) == ["trial", "shell", "config", "compose", "adaptive", "not_written", "notes"]
    for name in ("shell", "config", "compose", "adaptive"):
        text = (copied / entry[name]).read_text()
        assert "SIMULATED" in text
        assert "picked for latency: decode speed of one request at c1" in text
    after = {path: path.read_bytes() for path in folder.iterdir()}
    assert after.items() > before.items()
    assert spectune("export", "sim", cwd=copied).returncode == 0
    assert spectune("report", "sim", cwd=copied).returncode == 0
    assert {path: path.read_bytes() for path in folder.iterdir()} == after


def test_what_cannot_be_written_keeps_nothing_else_from_it(copied: Path) -> None:
    done = spectune("export", "sim", "--pick", "0", "--format", "adaptive,sh", cwd=copied)
    assert done.returncode == 2
    assert done.stdout.split() == ["studies/sim/export/launch-trial-0.sh"]
    assert "not written: adaptive: launch 0 does not speculate; name one that does with --pick TRIAL (" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pick", "99"], "there is no launch 99"),
        (["--pick", "fast"], "latency, throughput, balanced or the number of a launch, but got 'fast'"),
        (["--format", "sh,pdf"], "--format takes sh, yaml, compose, adaptive, separated by commas, but got 'pdf'"),
        (
            ["--pick", "0", "--format", "adaptive"],
            "launch 0 does not speculate; name one that does with --pick TRIAL (",
        ),
    ],
)
def test_an_export_that_cannot_be_is_refused(words: list[str], said: str, studied: Path) -> None:
    refused(spectune("export", "sim", *words, cwd=studied), said)


def test_what_was_said_when_a_study_began_is_not_said_again(studied: Path) -> None:
    done = spectune("search", "sim.yaml", "--study", "slower", cwd=studied)
    (note,) = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert note.startswith("note: SIMULATED")


def test_launches_that_failed_or_are_suspect_are_not_picked(tmp_path: Path) -> None:
    records = [
        record(0, baseline()),
        record(1, chain(2), failure=FailureClass.MEMORY),
        record(2, chain(3), suspect=[Mismatch("page-size", 1, 64)]),
    ]
    real_study(tmp_path, records)
    refuses(["export", "real", "--pick", "1"], tmp_path, "launch 1 failed (memory: it was memory)")
    refuses(["export", "real", "--pick", "2"], tmp_path, "launch 2 is suspect (page-size is 64, not 1)")


def test_two_studies_side_by_side(studied: Path) -> None:
    done = spectune("compare", "sim", "slower", cwd=studied)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("SIMULATED")
    assert "the machine or the engine changed (no speculation" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("next: look at what is different on record")
    told = json.loads(spectune("compare", "sim", "slower", "--json", cwd=studied).stdout)
    assert told["simulated"]
    assert told["levels"] == ["c1", "c4"]
    base = next(p for p in told["pairs"] if p["candidate_ids"] == [told["machine_seen_in"]] * 2)
    slower = base["levels"][0]
    assert slower["words"].startswith("slower by ")
    assert slower["ratio"][0] == pytest.approx(2.2 / 2.7, rel=0.02)  # ms for a token
    assert slower["beyond_machine"] is None
    assert any(level["beyond_machine"] for pair in told["pairs"] for level in pair["levels"])


def test_simulated_against_measured_is_refused(copied: Path) -> None:
    real_study(copied, [record(0, baseline()), record(1, chain(3), 150.0, accept=2.0)])
    refused(spectune("compare", "sim", "real", cwd=copied), "sim is simulated and real was measured on a real engine")
    refuses(["compare", "real", "sim"], copied, "sim is simulated and real was measured on a real engine")
    refuses(["compare", "real", "studies/real"], copied, "the same study")


def test_studies_with_little_in_them_compare_as_far_as_they_go(tmp_path: Path) -> None:
    real_study(tmp_path, [record(0, baseline())], "one")
    real_study(tmp_path, [record(0, chain(2), 120.0, accept=2.0)], "nobase")
    real_study(tmp_path, [record(0, baseline(), failure=FailureClass.CRASH)], "failed")
    real_study(tmp_path, [], "empty")
    done = spectune("compare", "one", "nobase", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cannot be told from one of the candidates" in done.stdout
    refuses(["compare", "one", "failed"], tmp_path, "failed has no launch that was measured as asked for")
    refuses(["compare", "empty", "one"], tmp_path, "empty has no finished launch yet")
    refuses(["compare", "one", "gone"], tmp_path, "there is no study gone")
    refuses(["export", "failed", "--json"], tmp_path, "failed has nothing to export")
    (tmp_path / "studies/one/environment.json").unlink()
    assert spectune("compare", "one", "nobase", cwd=tmp_path).returncode == 0


def test_newer_records_and_half_written_studies_are_refused_in_a_sentence(copied: Path) -> None:
    launch = exported(copied)
    result = copied / "studies/sim/trials/0000-baseline/result.json"
    content = files.read_json(result)
    for text, said in ((json.dumps({**content, "schema": 99}), "schema 99"), ("{", "not valid JSON")):
        result.write_text(text)
        for command in (["export", "sim"], ["compare", "sim", "slower"], ["check", str(launch)]):
            refuses(command, copied, said)
    (copied / "studies/slower/resolved.yaml").unlink()
    refuses(["export", "slower"], copied, "resolved.yaml")


def test_a_launch_that_still_holds(copied: Path) -> None:
    launch = exported(copied)
    records = {path: path.read_bytes() for path in (copied / "studies/sim").rglob("trials/*/*")}
    study = (copied / "studies/sim/study.db").read_bytes()
    done = spectune("check", str(launch), "--json", cwd=copied)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["outcome"] == "holds"
    assert told["words"].startswith("still holds: no difference shown; ")
    ids = [entry["candidate_id"] for entry in told["launches"]]
    assert len(ids) == 4
    assert ids[0] == ids[3] != ids[1] == ids[2]
    assert [level["level"] for level in told["levels"]] == ["objectives together", "c1", "c4"]
    kept = {
        path: path.read_bytes() for path in (copied / "studies/sim").rglob("trials/*/*") if "checks" not in str(path)
    }
    assert kept == records
    assert (copied / "studies/sim/study.db").read_bytes() == study
    assert "4 of 4" not in done.stderr
    assert "3 of 4 launches done" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "outcome", "words"),
    [
        ("graph: 2.0", "graph: 2.5", "machine_changed", "machine changed: the baseline is slower by 1"),
        ("  - 0.8\n", "  - 0.05\n", "below_break_even", "acceptance below break-even: 1."),
        ("graph: 0.2", "graph: 0.5", "launch_changed", "no longer holds: the launch is slower by"),
        ("weights_gb: 40", "weights_gb: 400", "failed", "does not hold: the launch failed (memory)"),
    ],
)
def test_what_no_longer_holds_is_told_apart(copied: Path, old: str, new: str, outcome: str, words: str) -> None:
    launch = exported(copied)
    edit_profile(copied, old, new)
    done = spectune("check", str(launch), "--json", cwd=copied)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["outcome"] == outcome
    assert words in told["words"]
    assert told["next"]


def test_a_baseline_is_checked_alone(copied: Path) -> None:
    launch = exported(copied, "0")
    told = json.loads(spectune("check", str(launch), "--json", cwd=copied).stdout)
    assert (told["outcome"], len(told["launches"])) == ("holds", 2)
    assert told["levels"][0]["baseline"] is None


def test_files_that_cannot_be_checked(copied: Path) -> None:
    launch = exported(copied)
    refuses(["check", "studies/sim/trials/0000-baseline/launch.sh"], copied, "not a launch file of spectune's")
    refuses(["check", "gone.sh"], copied, "cannot read gone.sh: No such file or directory")
    text = launch.read_text()
    launch.write_text(text.replace("--tp-size 2", "--tp-size 1"))
    refuses(["check", str(launch)], copied, "this file was edited", "--tp-size 1", f"{launch}:")
    launch.write_text(text.replace("study sim, trial ", "study sim, trial 9"))
    refuses(["check", str(launch)], copied, "which sim does not have")
    elsewhere = copied / "elsewhere.sh"
    elsewhere.write_text(text.replace("study sim,", "study gone,"))
    refuses(["check", str(elsewhere)], copied, "comes from the study gone, which is not here")
    elsewhere.write_text(text)
    done = spectune("check", "elsewhere.sh", cwd=copied)
    assert done.returncode == 0
    assert done.stdout.startswith("SIMULATED")
    lines = done.stdout.splitlines()
    assert [line.split(",")[0].strip() for line in lines if " alone, " in line] == ["at c1 alone", "at c4 alone"]
    assert lines[-2].startswith("by the geometric mean of decode speed at c1 and output throughput at c4: still holds")
    assert lines[-1].startswith("next: nothing has to be done")


def test_studies_that_cannot_be_checked(tmp_path: Path) -> None:
    real_study(tmp_path, [record(0, chain(2), 120.0, accept=2.0), record(1, baseline(), failure=FailureClass.CRASH)])
    launch = exported(tmp_path, "0", "real")
    refuses(["check", str(launch)], tmp_path, "the study real has no finished baseline")


def test_prompts_that_are_files_are_found_beside_the_space(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    lines = [json.dumps({"prompt": f"Say {n} in words.", "class": "counting"}) for n in range(400)]
    (tmp_path / "own/mine.jsonl").write_text("\n".join(lines))
    write(tmp_path / "own", workload={**SPACE["workload"], "prompts": "mine.jsonl"})
    assert spectune("search", "own/sim.yaml", "--trials", "2", cwd=tmp_path).returncode in (0, 1)
    launch = exported(tmp_path, "0")
    refuses(["check", str(launch)], tmp_path, "mine.jsonl", "--space FILE")
    refuses(["check", str(launch), "--space", "quickstart"], tmp_path, "has another workload than the study sim")
    done = spectune("check", str(launch), "--space", "own/sim.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_hostile_names_are_words_like_others(tmp_path: Path) -> None:
    name = "org/$(touch owned)\n\x1b[2J<b>'\"`touch owned`"
    for study, speed in (("one", 150.0), ("two", 120.0)):
        real_study(tmp_path, [record(0, baseline()), record(1, chain(3, name), speed, accept=2.0)], study)
    with contextlib.chdir(tmp_path):
        shown = CliRunner().invoke(app, ["compare", "one", "two"])
        written = CliRunner().invoke(app, ["export", "one", "--pick", "1", "--format", "sh,yaml,compose"])
    assert (shown.exit_code, written.exit_code) == (0, 0)
    assert "slower by" in shown.stdout
    assert all(char.isprintable() or char == "\n" for char in shown.stdout + written.stdout)
    for file in (tmp_path / "studies/one/export").glob("*.sh"):
        subprocess.run(["bash", "-n", file], check=True)
    assert not list(tmp_path.rglob("owned"))


def test_a_running_study_is_left_alone(copied: Path) -> None:
    launch = exported(copied)
    lock = StudyFolder(copied / "studies/sim").lock()
    try:
        refuses(["check", str(launch)], copied, "another spectune is running the study sim")
    finally:
        lock.release()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small study over HTTP, in real time."""
    folder = tmp_path_factory.mktemp("served")
    workload = {**SPACE["workload"], "levels": [{"concurrency": 1}], "level_time_limit": "1s"}
    write(folder, virtual=False, workload=workload)
    done = spectune("search", "sim.yaml", "--trials", "2", cwd=folder)
    assert (folder / "studies/sim/trials/0001/result.json").exists(), done.stderr
    return folder


def test_ctrl_c_leaves_nothing_running_and_the_same_check_runs_over_http(served: Path) -> None:
    launch = exported(served, "1")
    check = subprocess.Popen(
        [SPECTUNE, "check", launch], cwd=served, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline, tree = time.monotonic() + 240, set[psutil.Process]()
    while not list(served.glob("studies/sim/checks/*/trials/*/server_info.json")):
        assert time.monotonic() < deadline
        tree |= set(psutil.Process(check.pid).children(recursive=True))
        time.sleep(0.05)
    os.kill(check.pid, signal.SIGINT)
    _, said = check.communicate(timeout=240)
    assert check.returncode == 130
    assert "interrupted: nothing of this check counts" in said
    assert tree
    psutil.wait_procs(tree, timeout=120)
    assert [p for p in tree if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []
    told = spectune("check", str(launch), "--json", cwd=served)
    assert told.returncode in (0, 1), told.stderr
    assert [entry["status"] for entry in json.loads(told.stdout)["launches"]] == ["ok"] * 4
    assert len(list(served.glob("studies/sim/trials/*/result.json"))) == 2
