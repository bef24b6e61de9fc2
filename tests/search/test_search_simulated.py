"""Studies on the simulated engine, in virtual time and through its server."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from forked import spectune
from search_simulated import ALONE, SPACE, Silent, chain, launch, write

from spectune import files
from spectune.cli.opening import Asked
from spectune.engines.open import open_engine
from spectune.engines.protocol import LaunchCommand, Occasion
from spectune.engines.simulated.engine import PROFILE_FILE, SimulatedEngine
from spectune.errors import SpectuneError
from spectune.machine import take_fingerprint
from spectune.search import Status, StudyFolder, TrialRecord, open_prompts, open_study, run_study
from spectune.search.launch import trial as trial_module
from spectune.search.launch.traffic import longest_measuring_s
from spectune.search.storage.migration import refuse_another
from spectune.space import Candidate, load_space


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("virtual")
    write(folder)
    done = spectune("search", "sim.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "stdout").write_text(done.stdout)
    (folder / "stderr").write_text(done.stderr)
    return folder


def test_everything_a_simulated_study_leaves_says_so(finished: Path) -> None:
    assert "SIMULATED: no figure here was measured" in (finished / "stdout").read_text()
    assert "SIMULATED: the profile quick answers" in (finished / "stderr").read_text()
    study = finished / "studies/sim"
    summary = json.loads((study / "summary.json").read_text())
    assert summary["simulated"] is True
    assert "simulated SGLang" in summary["engine"]
    for exported in (study / "export").iterdir():
        text = exported.read_text()
        assert "SIMULATED" in text
        assert "measured" not in text.split("set -euo")[0].replace("not measured", "")
    assert "SIMULATED" in (finished / "reports/sim.html").read_text()
    machine = json.loads((study / "environment.json").read_text())["simulated_machine"]
    assert machine.startswith("the profile quick, ")
    page = (finished / "reports/sim.html").read_text()
    assert f"<p>Simulated: {machine}. Nothing was measured on it.</p>\n<h3>Where spectune ran</h3>" in page
    assert "<dt>GPUs</dt>" not in page
    for trial in (study / "trials").iterdir():
        assert "SIMULATED" in (trial / "server.log").read_text()
        assert "# simulated SGLang" in (trial / "launch.sh").read_text()
        assert json.loads((trial / "server_info.json").read_text())["simulated"] is True


def test_it_says_that_checkpoints_are_not_checked(finished: Path) -> None:
    assert "not looked for, and not checked" in (finished / "stderr").read_text()


def test_the_exported_command_is_sglangs_and_names_nothing_of_this_machine(finished: Path) -> None:
    exported = list((finished / "studies/sim/export").glob("*.sh"))
    assert exported
    for shell in exported:
        text = shell.read_text()
        assert "exec python3 -m sglang.launch_server \\\n  --model-path org/target" in text
        assert "SPECTUNE_SIM" not in text


def test_a_study_goes_on_in_virtual_time_as_if_it_had_not_stopped(finished: Path, tmp_path: Path) -> None:
    write(tmp_path)
    for trials in ("3", "6"):
        spectune("search", "sim.yaml", "--trials", trials, cwd=tmp_path)

    def figures(folder: Path) -> list[tuple[str, float]]:
        records = StudyFolder(folder / "studies/sim").records()
        return [(r.candidate.candidate_id, r.levels[0].decode_speed.est) for r in records]

    stopped = figures(tmp_path)
    assert len(stopped) == 6
    assert stopped[:3] == figures(finished)[:3]


def test_both_forms_find_the_same_engine(tmp_path: Path) -> None:
    records = []
    for name, virtual in (("virtual", True), ("served", False)):
        folder = tmp_path / name
        folder.mkdir()
        long = {"output_tokens": 48, "level_time_limit": "4s"}
        records.append(launch(write(folder, virtual=virtual, workload=ALONE | long), chain(3)))
    virtual, served = records
    assert virtual.status is served.status is Status.OK
    assert virtual.command.argv[1:3] == served.command.argv[1:3] == ("-m", "sglang.launch_server")
    for mine, theirs in zip(virtual.levels, served.levels, strict=True):
        assert mine.accept_length.est == pytest.approx(theirs.accept_length.est, rel=0.1)
        assert mine.accept_length_by_class.keys() == theirs.accept_length_by_class.keys()
    assert virtual.seconds.startup == pytest.approx(0.1 + 0.001 * len(range(23)), abs=0.1)


@pytest.mark.parametrize("virtual", [True, False])
def test_requests_beyond_the_cache_of_a_launch_fail_that_launch_alone(tmp_path: Path, *, virtual: bool) -> None:
    arguments = SPACE["engine"]["args"] | {"max-total-tokens": 20}
    record = launch(write(tmp_path, engine=SPACE["engine"] | {"virtual": virtual, "args": arguments}), chain(2))
    assert record.failure is not None
    assert record.failure.failure_class.value == "unsupported"
    assert "HTTP 400" in record.failure.message


def test_answers_in_virtual_time_are_as_long_as_their_prompts_allow(tmp_path: Path) -> None:
    (tmp_path / "asked.jsonl").write_text("".join(f'{{"prompt": "a {n}", "output_tokens": 9}}\n' for n in range(20)))
    record = launch(write(tmp_path, workload=ALONE | {"prompts": "asked.jsonl"}), chain(2))
    assert [level.output_tokens for level in record.levels] == [9]


@pytest.mark.parametrize("virtual", [True, False])
def test_a_fault_that_fires_once_in_a_study_spares_the_next_launch(tmp_path: Path, *, virtual: bool) -> None:
    fault = {"when": {"speculation": True}, "at": "load", "kind": "oom", "times": 1}
    file = write(tmp_path, virtual=virtual, profile={"faults": [fault]}, workload=ALONE)
    first, second = (launch(file, chain(2), number=number) for number in (0, 1))
    assert first.failure is not None
    assert first.failure.failure_class.value == "memory"
    assert second.status is Status.OK


@pytest.mark.parametrize(
    ("at", "kind", "expected"),
    [
        ("startup", "oom", "memory"), ("capture", "oom", "memory"), ("startup", "unsupported", "unsupported"),
        ("load", "crash", "crash"), ("ready", "nccl", "nccl"), ("startup", "port_in_use", "port_in_use"),
        ("load", "hang", "startup_timeout"), ("warmup", "crash", "crash"), ("bench", "oom", "memory"),
        ("bench", "hang", "hang"), ("bench", "http_500", "crash"), ("load", "http_500", "startup_timeout"),
        ("warmup", "http_500", "startup_timeout"), ("warmup", "hang", "startup_timeout"),
    ],
)  # fmt: skip
def test_faults_in_virtual_time_end_in_the_class_of_their_words(
    at: str, kind: str, expected: str, tmp_path: Path
) -> None:
    record = launch(write(tmp_path, profile={"faults": [{"when": {}, "at": at, "kind": kind}]}), chain(2))
    assert record.status is Status.FAILED
    assert record.failure is not None
    assert record.failure.failure_class.value == expected
    assert record.seconds.total >= record.seconds.startup > 0 or at == "startup"


def test_a_launch_that_never_answers_has_the_time_of_the_space_and_no_more(tmp_path: Path) -> None:
    faults = [{"when": {}, "at": "load", "kind": "hang"}]
    failure = launch(write(tmp_path, profile={"faults": faults}), chain(3)).failure
    assert failure is not None
    assert "not ready within 60 s" in failure.message


def test_the_study_clock_and_the_number_of_the_launch_reach_the_engine(tmp_path: Path) -> None:
    engine = open_engine(load_space(write(tmp_path)))
    command = LaunchCommand(("python3", "-m", "sglang.launch_server"), {"A": "1"}, ("B",))
    started = engine.supervised(command, Occasion(7, 1.5, tmp_path))
    assert started.argv[-3:] == command.argv
    assert {"SPECTUNE_SIM_LAUNCH": "7", "SPECTUNE_SIM_HOURS": "1.500000000", "A": "1"}.items() <= started.env.items()
    assert "B" in started.unset
    assert "SPECTUNE_SIM_TIME_SCALE" in started.environment({"SPECTUNE_SIM_TIME_SCALE": "0.1"}).keys() ^ {
        "SPECTUNE_SIM_TIME_SCALE"
    }


def test_drift_is_that_of_the_study_clock(tmp_path: Path) -> None:
    noise = {
        "launch_sd": 0.0,
        "window_sd": 0.0,
        "drift_per_hour": 0.5,
        "first_requests_slow": {"requests": 0, "factor": 1.0},
    }
    file = write(tmp_path, profile={"noise": noise}, budget={"trials": 10})
    ended = asyncio.run(_study(tmp_path, file, open_engine(load_space(file))))
    steps = [record.levels[0].cycle_ms.est for record in ended if not record.candidate.speculative]
    assert len(steps) > 1
    assert steps == sorted(steps)
    assert steps[-1] > steps[0]


async def _study(folder: Path, file: Path, engine: Any) -> list[TrialRecord]:
    space = load_space(file)
    study = StudyFolder(folder / "studies/drift")
    (folder / "studies/drift").mkdir(parents=True)
    open_study(study, space, engine)
    return list((await run_study(study, space, engine, Silent())).records)


def test_another_profile_is_another_study(finished: Path) -> None:
    study = StudyFolder(finished / "studies/sim")
    space = load_space(finished / "sim.yaml")
    engine = open_engine(space)
    assert isinstance(engine, SimulatedEngine)
    open_study(study, space, engine)
    kept = (study.root / PROFILE_FILE).read_text()
    (study.root / PROFILE_FILE).write_text(kept + "# changed\n")
    try:
        with pytest.raises(SpectuneError, match=f"begun with another {PROFILE_FILE}"):
            open_study(study, space, engine)
    finally:
        (study.root / PROFILE_FILE).write_text(kept)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("quickstart", "--profile", "kimi-k2.5-pcie"), "--profile is for the simulated engine"),
        (("quickstart", "--virtual"), "--virtual is for the simulated engine"),
        (("quickstart", "--engine", "simulated", "--virtual", "--study", ""), "a study's name is made of letters"),
        (("quickstart", "--trials", "9" * 400), "--trials must be at most 1,000,000"),
        (("eagle3", "--engine", "simulated", "--profile", "nobody"), "there is no profile"),
        (("eagle3", "--engine", "simulated", "--profile", "./no.yaml"), "there is no profile './no.yaml', neither"),
        (("big.yaml", "--profile", "quik"), "there is no profile 'quik', neither"),
        (("eagle3", "--engine", "vllm"), "'vllm'"),
        (("eagle3", "--engine", "simulated", "--dry-run", "--with-engine"), "a simulated engine has none to ask"),
        (("big.yaml",), "engine.gpus asks for 4 GPUs, but the profile quick has 2"),
    ],
)
def test_options_that_do_not_go_together(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    file = write(tmp_path, engine=SPACE["engine"] | {"gpus": 4})
    file.rename(tmp_path / "big.yaml")
    done = spectune("search", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_any_space_runs_on_the_simulated_engine(tmp_path: Path) -> None:
    done = spectune("search", "eagle3", "--engine", "simulated", "--virtual", "--trials", "9", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["simulated"] is True
    assert summary["engine"] == "simulated SGLang 0.5.23 on kimi-k2.5-pcie, in virtual time"
    # The same file without the option is another study: its figures must never stand beside these.
    again = Asked("eagle3").space()
    with pytest.raises(SpectuneError, match=r"do not count here: engine\.kind: simulated → sglang"):
        refuse_another(StudyFolder(tmp_path / "studies/eagle3-kimi-k2.5"), again)


def test_a_dry_run_on_the_simulated_engine_lacks_nothing(tmp_path: Path) -> None:
    done = spectune("search", "eagle3", "--engine", "simulated", "--dry-run", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert told["simulated"] is True
    assert told["missing"] == []
    assert any("SIMULATED" in note for note in told["notes"])


def test_a_launch_says_how_the_machine_has_changed_since_the_study_began(tmp_path: Path) -> None:
    """After a reboot and an upgrade of the engine, figures before and after may not be comparable."""
    root = tmp_path / "studies/one"
    before = take_fingerprint("simulated SGLang 0.5.22 on quick").to_json()
    before["host"]["boot_id"] = "the-boot-before"
    files.write_json(root / "environment.json", before)
    served = launch(write(tmp_path, virtual=False, workload=ALONE), chain(2), root=root)
    assert served.status is Status.OK, (served.failure, served.suspect)
    changes = {change.field: (change.after, change.matters) for change in served.environment_changes}
    assert changes.keys() == {"host.boot_id", "software.engine"}
    assert changes["software.engine"] == ("simulated SGLang 0.5.23 on quick", True)
    assert launch(write(tmp_path), chain(2), number=1, root=root).environment_changes == ()  # it depends on no machine


def test_a_profile_that_is_edited_while_a_study_runs_is_another_machine(tmp_path: Path) -> None:
    file = write(tmp_path)
    space = load_space(file)
    engine = open_engine(space)
    opened = StudyFolder(tmp_path / "studies/sim")
    opened.root.mkdir(parents=True)
    open_study(opened, space, engine)
    write(tmp_path, profile={"host_ms": 90.0})
    started = engine.supervised(LaunchCommand(("python3",)), Occasion(0, 0.0, opened.root))
    assert "host_ms: 0.2" in Path(started.env["SPECTUNE_SIM_PROFILE"]).read_text()


def test_the_list_of_studies_says_which_are_simulated(finished: Path) -> None:
    line = spectune("studies", cwd=finished).stdout.splitlines()[1]
    assert re.match(r"sim +simulated ", line), line
    (row,) = json.loads(spectune("studies", "--json", cwd=finished).stdout)
    assert row["simulated"] is True


def test_another_engine_for_a_study_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    done = spectune("search", "quickstart", "--engine", "simulated", "--virtual", "--trials", "1", cwd=tmp_path)
    assert "SIMULATED" in done.stdout
    done = spectune("search", "quickstart", cwd=tmp_path)
    assert done.returncode == 2
    assert "begun with another search space or engine" in done.stderr
    assert "install" not in done.stderr


def test_slow_first_requests_are_over_before_the_first_level_in_both_forms(tmp_path: Path) -> None:
    slow = {"noise": {"launch_sd": 0.0, "window_sd": 0.0, "first_requests_slow": {"requests": 4, "factor": 20.0}}}
    for virtual in (True, False):
        folder = tmp_path / str(virtual)
        folder.mkdir()
        record = launch(write(folder, virtual=virtual, profile=slow), chain(3))
        (one, _) = record.levels
        assert one.cycle_ms.est < 32.0, (virtual, "twenty times as slow it takes 64 ms")


def test_a_launch_that_outlives_all_limits_of_its_parts_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catch-all: something that has no limit, or does not keep to it."""
    monkeypatch.setattr(trial_module, "PROGRAM_S", 0.0)
    monkeypatch.setattr(trial_module, "longest_measuring_s", lambda *_, **__: -56.0)  # 4 s with those to start
    slow = {"workload": SPACE["workload"] | {"level_time_limit": "60s", "precision": 0.0001}}
    file = write(tmp_path, virtual=False, **slow)
    record = launch(file, Candidate.of({"speculative-algorithm": "none"}))
    assert record.failure is not None
    assert record.failure.failure_class.value == "hang"
    assert "although each of its parts has a limit" in record.failure.message
    assert record.seconds.shutdown > 0, "its engine was ended"


def test_the_limit_of_a_launch_is_beyond_those_of_its_parts(tmp_path: Path) -> None:
    space = load_space(write(tmp_path))
    parts_s = 2 * (10 + 2 + 20)  # of two levels: warm-up, measuring and draining
    assert longest_measuring_s(space, open_prompts(space), hang_s=45.0) > parts_s + 3 * 45
