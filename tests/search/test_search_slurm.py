"""A search whose workers run through a real Slurm and meet in a real PostgreSQL."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from private_slurm import Slurm
from search_simulated import write
from search_workers import Started, processes, records, space, written

from benchmarks.services.daemon import eventually
from benchmarks.services.postgresql import PASSWORD, PostgreSQL
from spectune.search.storage.folder import StudyFolder

pytestmark = pytest.mark.services


def search(folder: Path, storage: str, slurm: Slurm) -> Started:
    return Started(
        folder, "search", "sim.yaml", "--executor", "slurm", "--nodes", "2", "--slurm", "time=10",
        storage=storage, env=slurm.env,
    )  # fmt: skip


def test_two_workers_make_a_study_and_its_answer(tmp_path: Path, postgresql: PostgreSQL, slurm: Slurm) -> None:
    write(tmp_path)  # in virtual time, where figures are the same however busy the machine is
    with search(tmp_path, postgresql.new_database("through_slurm"), slurm) as started:
        assert started.ends() == 0, started.said
    assert [record.trial for record in records(tmp_path)] == list(range(6))
    assert StudyFolder(tmp_path / "studies/sim").summary_file.is_file()
    assert list((tmp_path / "studies/sim/export").glob("*.sh"))
    machine = (tmp_path / "studies/sim.worker2/environment.json").read_bytes()
    assert (tmp_path / "studies/sim/environment.json").read_bytes() == machine, "where launches were made, not from"
    folders = ["sim", "sim.worker2", "sim.worker3"]
    assert len({tuple(written(tmp_path, folder).items()) for folder in folders}) == 1
    assert not slurm.jobs()
    assert not processes(tmp_path)
    holding = [file for file in tmp_path.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()]
    assert not holding
    assert not list(tmp_path.rglob("*.pkl"))


def test_a_cancelled_search_leaves_no_job(tmp_path: Path, postgresql: PostgreSQL, slurm: Slurm) -> None:
    space(tmp_path, trials=40)
    with search(tmp_path, postgresql.new_database("cancelled"), slurm) as started:
        assert eventually(lambda: bool(slurm.jobs()) and bool(written(tmp_path)), 120.0), started.said
        started.process.send_signal(signal.SIGINT)
        assert started.ends() == 130, started.said
    assert "the same command continues the study sim" in started.said
    assert not slurm.jobs()
    assert not processes(tmp_path)
    assert len(records(tmp_path)) < 40


def test_a_job_that_slurm_refuses_is_told_in_one_sentence(tmp_path: Path, postgresql: PostgreSQL, slurm: Slurm) -> None:
    space(tmp_path, trials=4)
    with Started(
        tmp_path, "search", "sim.yaml", "--executor", "slurm", "--nodes", "2", "--slurm", "partition=none-such",
        storage=postgresql.new_database("refused"), env=slurm.env,
    ) as started:  # fmt: skip
        assert started.ends() == 2, started.said
    assert "spectune: Slurm does not take the job: invalid partition specified: none-such" in started.said
    assert "Traceback" not in started.said
