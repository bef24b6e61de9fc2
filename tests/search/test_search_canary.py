"""Launches that are not what they say are ended before they are measured."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_simulated import SPACE, Silent, chain, write

from spectune.engines.open import open_engine
from spectune.engines.protocol import LaunchCommand
from spectune.search import Status, StudyFolder, TrialRecord, open_study, run_study
from spectune.search.storage.worker_variables import read_back
from spectune.space import load_space


def study(folder: Path, *, virtual: bool = True, trials: int = 3, **profile: Any) -> list[TrialRecord]:
    file = write(folder, virtual=virtual, profile=profile, budget={"trials": trials})
    space = load_space(file)
    engine = open_engine(space)
    opened = StudyFolder(folder / "studies/sim")
    opened.root.mkdir(parents=True, exist_ok=True)
    open_study(opened, space, engine)
    return list(asyncio.run(run_study(opened, space, engine, Silent())).records)


@pytest.mark.parametrize("virtual", [True, False])
def test_a_drafter_of_which_nothing_is_accepted_is_not_measured(tmp_path: Path, *, virtual: bool) -> None:
    fault = {"when": {"speculation": True}, "at": "ready", "kind": "zero_acceptance"}
    baseline, *others = study(tmp_path, virtual=virtual, faults=[fault])
    assert baseline.status is Status.OK
    for record in others:
        assert record.failure is not None
        assert record.failure.failure_class.value == "drafter"
        assert "accept length 1.00 after" in record.failure.message
        assert "(1) the drafter org/drafter was made for another base model" in record.failure.message
        assert record.levels == ()


def test_a_drafter_that_stops_being_right_after_the_canary_is_told_and_its_figures_hold(tmp_path: Path) -> None:
    fault = {"when": {"speculation": True}, "at": "bench", "kind": "zero_acceptance"}
    baseline, *others = study(tmp_path, faults=[fault])
    assert baseline.notes == ()
    for record in others:
        assert record.status is Status.OK
        assert [level.accept_length.est for level in record.levels] == [1.0, 1.0]
        assert any("nothing that is drafted for this workload is accepted" in note for note in record.notes)


@pytest.mark.parametrize("virtual", [True, False])
def test_corrupt_answers_are_told_from_the_baselines(tmp_path: Path, *, virtual: bool) -> None:
    fault = {"when": {"speculation": True}, "at": "ready", "kind": "garbage_output"}
    baseline, *others = study(tmp_path, virtual=virtual, trials=2, faults=[fault])
    assert baseline.status is Status.OK
    assert [r.failure and r.failure.failure_class.value for r in others] == ["corrupt"]


def test_a_healthy_study_has_no_alarm_and_keeps_its_answers(tmp_path: Path) -> None:
    records = study(tmp_path, trials=3)
    assert [(r.status, r.notes, r.suspect) for r in records] == [(Status.OK, (), ())] * 3
    folders = sorted((tmp_path / "studies/sim/trials").iterdir())
    kept = [json.loads((folder / "canary.json").read_text()) for folder in folders]
    assert [len(content["together"]) for content in kept] == [7, 7, 7]
    assert [len(content["alone"]) for content in kept] == [7, 0, 0]


def test_a_study_that_goes_on_compares_with_the_first_baseline(tmp_path: Path) -> None:
    study(tmp_path, trials=2)
    kept = tmp_path / "studies/sim/trials/0000-baseline/canary.json"
    content = json.loads(kept.read_text())
    for answers in content.values():
        for answer in answers if isinstance(answers, list) else ():
            answer["output_ids"] = [9] * 48
    kept.write_text(json.dumps(content))
    last = study(tmp_path, trials=3)[-1]
    assert last.failure is not None
    assert last.failure.failure_class.value == "corrupt"


@pytest.mark.parametrize("virtual", [True, False])
def test_variables_are_read_back_from_every_worker(tmp_path: Path, *, virtual: bool) -> None:
    file = write(tmp_path, virtual=virtual)
    text = file.read_text().replace("  gpus: 2", "  gpus: 2\n  env: {NCCL_ALGO: Ring, NCCL_PROTO: unset}")
    file.write_text(text)
    space = load_space(file)
    engine = open_engine(space)
    opened = StudyFolder(tmp_path / "studies/sim")
    opened.root.mkdir(parents=True)
    open_study(opened, space.with_budget(space.budget.model_copy(update={"trials": 1})), engine)
    one = space.with_budget(space.budget.model_copy(update={"trials": 1}))
    (record,) = asyncio.run(run_study(opened, one, engine, Silent())).records
    assert record.failure is None
    assert [r.words for r in record.environment_reached] == [
        "NCCL_ALGO=Ring reached 2 of 2 workers", "NCCL_PROTO unset reached 2 of 2 workers",
    ]  # fmt: skip
    assert TrialRecord.from_json(record.to_json(), "x").environment_reached == record.environment_reached


def test_a_variable_that_the_launcher_overwrites_is_a_failed_launch(tmp_path: Path) -> None:
    # SGLang sets NCCL_CUMEM_ENABLE itself, to 1 with symmetric memory whatever it was told.
    file = write(tmp_path)
    text = file.read_text().replace("  gpus: 2", '  gpus: 2\n  env: {NCCL_CUMEM_ENABLE: "0"}')
    file.write_text(text.replace("  args:\n", "  args:\n    enable-symm-mem: true\n"))
    space = load_space(file)
    engine = open_engine(space)
    opened = StudyFolder(tmp_path / "studies/sim")
    opened.root.mkdir(parents=True)
    open_study(opened, space, engine)
    record = next(iter(asyncio.run(run_study(opened, space, engine, Silent())).records))
    assert record.failure is not None
    assert record.failure.failure_class.value == "environment"
    assert "NCCL_CUMEM_ENABLE=0 reached 0 of 2 workers" in record.failure.message


names = st.sampled_from(["A", "B", "C", "D"])
values = st.sampled_from(["", "1", "ring"])


@given(st.dictionaries(names, values), st.sets(names), st.lists(st.dictionaries(names, values), max_size=4))
def test_reading_back_counts_each_worker_once(
    wanted: dict[str, str], unset: set[str], workers: list[dict[str, str]]
) -> None:
    command = LaunchCommand(("x",), wanted, tuple(sorted(unset - wanted.keys())))
    found = read_back(command, workers, frozenset({"D"}))
    assert {r.name for r in found} == wanted.keys() | (unset - wanted.keys() - {"D"})
    for reached in found:
        assert reached.of == len(workers)
        assert reached.workers == sum(worker.get(reached.name) == reached.wanted for worker in workers)


@pytest.mark.parametrize(
    ("found", "reached"), [("2,3", True), ("3", True), ("2", True), ("0,1", False), ("2,3,4", False), ("", False)]
)
def test_a_worker_may_have_been_given_one_of_the_gpus_of_its_launch(found: str, *, reached: bool) -> None:
    command = LaunchCommand(("x",)).with_variables({"CUDA_VISIBLE_DEVICES": "2,3"})
    (one,) = read_back(command, [{"CUDA_VISIBLE_DEVICES": found}], ())
    assert one.workers == int(reached)


def test_the_candidate_of_these_tests_is_one_of_the_space(tmp_path: Path) -> None:
    assert open_engine(load_space(write(tmp_path))).canonical(dict(chain(2).values)) == chain(2)


@pytest.mark.parametrize("virtual", [True, False])
def test_what_really_runs_is_kept_and_what_runs_outside_graphs_is_said(tmp_path: Path, *, virtual: bool) -> None:
    file = write(tmp_path, virtual=virtual, budget={"trials": 2})
    text = file.read_text().replace("  args:\n", "  args:\n    cuda-graph-bs-decode: [1, 2]\n")
    file.write_text(text)
    space = load_space(file)
    opened = StudyFolder(tmp_path / "studies/sim")
    opened.root.mkdir(parents=True)
    engine = open_engine(space)
    open_study(opened, space, engine)
    records = asyncio.run(run_study(opened, space, engine, Silent())).records
    for record, kind in zip(records, ("decode", "verify"), strict=True):
        assert record.status is Status.OK
        assert record.effective.graph_batches == {kind: (1, 2)}
        assert record.effective.max_running_requests == 48
        assert record.effective.kv_tokens is not None
        assert [level.graph_used for level in record.levels] == [True, False]
        assert TrialRecord.from_json(json.loads(json.dumps(record.to_json())), "x").effective == record.effective


def sampling_study(folder: Path, temperature: float, *, virtual: bool = True, **profile: Any) -> list[TrialRecord]:
    workload = SPACE["workload"] | {"temperature": temperature}
    file = write(folder, virtual=virtual, profile=profile, budget={"trials": 2}, workload=workload)
    space = load_space(file)
    opened = StudyFolder(folder / "studies/sim")
    opened.root.mkdir(parents=True, exist_ok=True)
    engine = open_engine(space)
    open_study(opened, space, engine)
    return list(asyncio.run(run_study(opened, space, engine, Silent())).records)


GREEDY_VERIFY = {"faults": [{"when": {"speculation": True}, "at": "ready", "kind": "ignores_temperature"}]}


@pytest.mark.parametrize("virtual", [True, False])
def test_a_verify_that_ignores_the_temperature_is_told_from_the_baseline(tmp_path: Path, *, virtual: bool) -> None:
    """sglang#31214: the verify is always greedy on ROCm, so a sampling workload measures something else."""
    baseline, speculating = sampling_study(tmp_path, 0.8, virtual=virtual, **GREEDY_VERIFY)
    assert baseline.status is Status.OK
    assert speculating.failure is not None
    assert speculating.failure.failure_class.value == "corrupt"
    assert "go on as greedy ones after their first token" in speculating.failure.message
    assert "without speculative-use-rejection-sampling" in speculating.failure.message
    assert "measure at temperature 0, or do without speculation at 0.8" in speculating.failure.message
    assert speculating.levels == ()


@pytest.mark.parametrize(("temperature", "profile", "asked"), [(0.8, {}, 7), (0.0, GREEDY_VERIFY, 0)])
def test_sampling_raises_no_alarm_where_answers_vary_or_need_not(
    tmp_path: Path, temperature: float, profile: dict[str, Any], asked: int
) -> None:
    records = sampling_study(tmp_path, temperature, **profile)
    assert [(r.status, r.notes) for r in records] == [(Status.OK, ())] * 2
    for folder in (tmp_path / "studies/sim/trials").iterdir():
        kept = json.loads((folder / "canary.json").read_text())
        assert len(kept["sampled"]) == len(kept["continued"]) == asked
