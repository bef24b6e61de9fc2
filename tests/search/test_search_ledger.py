"""Optuna's storage follows the records."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState
from search_samples import baseline, chain, record, space

from spectune.engines.protocol import Mismatch
from spectune.errors import SpectuneError
from spectune.search.storage.bulk_trials import TABLES
from spectune.search.storage.ledger import Ledger, as_trials
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.search.storage.values import LAUNCH
from spectune.serving import FailureClass

RECORDS = [
    record(0, baseline(), 100.0, ttft_ms=200.0),
    record(1, chain(3), 150.0, ttft_ms=120.0),
    record(2, chain(1), failure=FailureClass.MEMORY),
    record(3, chain(2), 400.0, suspect=[Mismatch("page-size", 1, 64)]),
    record(4, chain(4), 90.0, ttft_ms=700.0),
]


def stored(path: Path) -> list[optuna.trial.FrozenTrial]:
    return optuna.load_study(study_name="s", storage=f"sqlite:///{path}").get_trials()


def run(path: Path, records: list[TrialRecord]) -> None:
    ledger = Ledger(path, "s", space(), [])
    for n, one in enumerate(records):
        ledger.begin(Step(one.trial, one.role, one.candidate, one.why), records[:n])
        ledger.finish(one, records[:n])


def summary(trials: list[optuna.trial.FrozenTrial]) -> list[object]:
    return [(t.number, t.state, t.values, t.params, t.constraints, t.user_attrs) for t in trials]


def test_each_launch_is_a_trial_with_its_number(tmp_path: Path) -> None:
    run(tmp_path / "study.db", RECORDS)
    trials = stored(tmp_path / "study.db")
    assert [t.number for t in trials] == [0, 1, 2, 3, 4]
    assert all(t.state is TrialState.COMPLETE for t in trials)
    assert trials[1].values == [150.0, 120.0]
    assert trials[1].params["speculative-num-steps"] == 3
    assert "speculative-num-steps" not in trials[0].params
    assert [t.user_attrs["candidate_id"] for t in trials] == [r.candidate.candidate_id for r in RECORDS]


def test_failed_and_suspect_launches_are_infeasible_with_the_worst_values_seen(tmp_path: Path) -> None:
    run(tmp_path / "study.db", RECORDS)
    trials = stored(tmp_path / "study.db")
    assert trials[2].values == [100.0, 200.0]
    assert trials[3].values == [100.0, 200.0]
    assert [t.constraints[LAUNCH] for t in trials] == [-1.0, -1.0, 1.0, 1.0, -1.0]


def test_bounds_of_the_space_are_constraints(tmp_path: Path) -> None:
    run(tmp_path / "study.db", RECORDS)
    trials = stored(tmp_path / "study.db")
    broken = [{k: v for k, v in t.constraints.items() if k != LAUNCH} for t in trials]
    assert list(broken[1].values()) == [pytest.approx(120 / 500 - 1)]
    assert list(broken[4].values()) == [pytest.approx(700 / 500 - 1)]


@pytest.mark.parametrize("damage", ["missing", "garbage", "torn", "behind", "running"])
def test_a_storage_that_differs_is_made_anew(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "study.db"
    records = [r for r in RECORDS if r.status.value == "ok"]
    records = [record(n, r.candidate, r.levels[0].decode_speed.est) for n, r in enumerate(records)]
    run(path, records)
    before = summary(stored(path))
    if damage == "missing":
        path.unlink()
    elif damage == "garbage":
        path.write_bytes(b"not a database at all")
    elif damage == "torn":
        path.write_bytes(path.read_bytes()[:5000])
    elif damage == "behind":
        path.unlink()
        run(path, records[:-1])
    else:
        Ledger(path, "s", space(), records).begin(Step(3, Role.SEARCH, chain(2), "never finished"), records)
    Ledger(path, "s", space(), records)
    assert summary(stored(path)) == before


def test_a_storage_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    ledger = Ledger(path, "s", space(), [])
    path.unlink()
    path.mkdir()
    with pytest.raises(SpectuneError, match="finished launches are kept") as raised:
        ledger.begin(Step(0, Role.BASELINE, baseline(), "x"), [])
    assert "\n" not in str(raised.value)


BREAKS = {
    "without tables": lambda path: sqlite3.connect(path).execute("DROP TABLE trials"),
    "rubbish": lambda path: path.write_bytes(b"rubbish" * 3000),
    "gone": Path.unlink,
}


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("between", ["launches", "begin and finish"])
def test_a_storage_that_breaks_while_it_is_in_use_is_made_anew(tmp_path: Path, broken: str, between: str) -> None:
    run(tmp_path / "whole.db", RECORDS)
    path = tmp_path / "study.db"
    ledger = Ledger(path, "s", space(), [])
    for n, one in enumerate(RECORDS):
        if n == 2 and between == "launches":
            BREAKS[broken](path)
        ledger.begin(Step(one.trial, one.role, one.candidate, one.why), RECORDS[:n])
        if n == 2 and between != "launches":
            BREAKS[broken](path)
        ledger.finish(one, RECORDS[:n])
    assert summary(stored(path)) == summary(stored(tmp_path / "whole.db"))


def test_a_storage_that_another_program_holds_locked_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    ledger = Ledger(path, "s", space(), RECORDS[:1])
    ledger.begin(Step(1, Role.SEARCH, RECORDS[1].candidate, "x"), RECORDS[:1])
    another = sqlite3.connect(path, isolation_level=None)
    another.execute("BEGIN EXCLUSIVE")
    ledger.finish(RECORDS[1], RECORDS[:1])
    another.close()
    assert len(stored(path)) == 2


def test_an_agreeing_storage_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    run(path, RECORDS)
    optuna.load_study(study_name="s", storage=f"sqlite:///{path}").set_user_attr("mine", "kept")
    Ledger(path, "s", space(), RECORDS)
    assert optuna.load_study(study_name="s", storage=f"sqlite:///{path}").user_attrs == {"mine": "kept"}


def test_what_is_written_at_once_is_what_optuna_writes_one_by_one(tmp_path: Path) -> None:
    Ledger(tmp_path / "study.db", "s", space(), RECORDS)
    study = optuna.create_study(
        study_name="s", storage=f"sqlite:///{tmp_path}/one.db", directions=["maximize", "minimize"]
    )
    study.add_trials(as_trials(RECORDS, space()))
    assert summary(stored(tmp_path / "study.db")) == summary(study.get_trials())
    times = [(t.datetime_start, t.datetime_complete) for t in stored(tmp_path / "study.db")]
    assert all(start is not None and start == end for start, end in times)


def test_a_study_whose_storage_was_made_at_once_goes_on(tmp_path: Path) -> None:
    run(tmp_path / "one.db", RECORDS)
    ledger = Ledger(tmp_path / "study.db", "s", space(), RECORDS[:-1])
    ledger.begin(Step(4, Role.SEARCH, RECORDS[-1].candidate, "next"), RECORDS[:-1])
    ledger.finish(RECORDS[-1], RECORDS[:-1])
    assert summary(stored(tmp_path / "study.db")) == summary(stored(tmp_path / "one.db"))


def test_tables_that_are_not_known_are_filled_by_optuna(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spectune.search.storage.bulk_trials.TABLES", (*TABLES, "of_another_optuna"))
    Ledger(tmp_path / "study.db", "s", space(), RECORDS)
    assert len(stored(tmp_path / "study.db")) == len(RECORDS)
