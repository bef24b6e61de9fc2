"""What is Slurm's own: options, the batch script, and what is said when it does not go well."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from private_slurm import Slurm

from spectune.errors import SpectuneError
from spectune.executors import SlurmExecutor, State, WorkerCommand, WorkerSeen, parse_options

COMMAND = WorkerCommand(["true"], {"SPECTUNE_STORAGE": "postgresql://u:planted-secret@db/x"})


@pytest.fixture
def cluster(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    return slurm


def test_options_are_those_of_sbatch() -> None:
    given_options = ["partition=gpu", "time=12:00:00", "gres=gpu:h100:8", "comment=a=b", "exclusive"]
    assert parse_options(given_options) == {
        "partition": "gpu", "time": "12:00:00", "gres": "gpu:h100:8", "comment": "a=b", "exclusive": True,
    }  # fmt: skip


@pytest.mark.parametrize("wrong", ["", "=gpu", "--time=1", "time=1\nrm -rf x", "Time=1", "a b=1", "array=0-9"])
def test_what_is_no_option_is_refused(wrong: str) -> None:
    with pytest.raises(SpectuneError, match="--slurm"):
        parse_options([wrong])


@given(st.text())
def test_any_text_is_one_option_on_one_line_or_refused(text: str) -> None:
    try:
        options = parse_options([text])
    except SpectuneError:
        return
    assert [key if value is True else f"{key}={value}" for key, value in options.items()] == [text]
    assert text.isprintable()


def test_without_slurm_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SpectuneError, match="sbatch, squeue, scancel"):
        SlurmExecutor({}, name="x")


def unanswered(folder: Path) -> str:
    """Make a folder with a `squeue` as it is while the controller is away, but quicker."""
    folder.mkdir()
    (folder / "squeue").write_text("#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact' >&2\nexit 1\n")
    (folder / "squeue").chmod(0o755)
    return str(folder)


@pytest.mark.services
def test_workers_wait_for_slurm_and_slurm_may_be_away(
    cluster: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> tuple[Sequence[WorkerSeen], Sequence[WorkerSeen]]:
        executor = SlurmExecutor({"begin": "now+1hour", "no-requeue": True}, name="x")
        await executor.start(COMMAND, 2, tmp_path)
        try:
            async with asyncio.timeout(240):
                while True:
                    waiting = await executor.look()
                    if "(" in waiting[0].words:  # at first without a reason
                        break
                    await asyncio.sleep(0.1)
            with monkeypatch.context() as elsewhere:
                elsewhere.setenv("PATH", unanswered(tmp_path / "bin"), prepend=os.pathsep)
                await asyncio.sleep(0.5)  # what is asked at once again is answered from memory
                return waiting, await executor.look()
        finally:
            await executor.end()

    waiting, still = asyncio.run(run())
    assert [(worker.state, worker.words) for worker in waiting] == [(State.WAITING, "PENDING (BeginTime)")] * 2
    assert still == waiting
    assert not cluster.jobs()


def submit(folder: Path, *, gpus: int = 0, **options: str) -> str:
    """Submit two workers, cancel them and return the batch script."""

    async def run() -> None:
        executor = SlurmExecutor({key.replace("_", "-"): value for key, value in options.items()}, name="x", gpus=gpus)
        await executor.start(COMMAND, 2, folder)
        await executor.end()

    asyncio.run(run())
    (script,) = folder.glob("*_submission.sh")
    return script.read_text()


@pytest.mark.services
def test_the_batch_script_holds_a_command_and_no_secret(cluster: Slurm, tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    lines = submit(folder, time="1:00:00", comment="$(touch owned); a'b").splitlines()
    assert "exec true" in lines
    assert {"#SBATCH --array=0-1%2", "#SBATCH --time=1:00:00", "#SBATCH --signal=B:TERM@60"} <= set(lines)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not [file for file in folder.rglob("*") if file.suffix == ".pkl" or "planted-secret" in file.read_text()]
    assert not Path("owned").exists()
    assert not cluster.jobs()


@pytest.mark.services
def test_a_worker_asks_for_the_gpus_of_its_engine_unless_told_otherwise(cluster: Slurm, tmp_path: Path) -> None:
    with pytest.raises(SpectuneError, match="Slurm does not take the job: "):
        submit(tmp_path / "without", gpus=8)  # this cluster has none
    assert "gpus-per-node" not in submit(tmp_path / "with", gpus=8, gpus_per_task="0")


@pytest.mark.services
def test_slurms_own_words_tell_what_it_refuses(
    cluster: Slurm, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SpectuneError, match="Slurm does not take the job: invalid partition specified: none-such"):
        submit(tmp_path, partition="none-such")
    assert not capfd.readouterr().err
    assert not cluster.jobs()


@pytest.mark.services
def test_workers_of_a_killed_search_are_found_and_only_what_is_missing_is_added(
    cluster: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = {"begin": "now+1hour"}

    async def run() -> tuple[Sequence[WorkerSeen], Sequence[WorkerSeen]]:
        killed, another = SlurmExecutor(later, name="x"), SlurmExecutor(later, name="another")
        await killed.start(COMMAND, 2, tmp_path / "logs")  # and is never heard of again
        with monkeypatch.context() as elsewhere:
            (tmp_path / "other").mkdir()
            elsewhere.chdir(tmp_path / "other")
            await another.start(COMMAND, 1, tmp_path / "other/logs")
        again, enough = SlurmExecutor(later, name="x"), SlurmExecutor(later, name="x")
        try:
            await again.start(COMMAND, 3, tmp_path / "logs")
            await enough.start(COMMAND, 2, tmp_path / "logs")
            return await again.look(), await enough.look()
        finally:
            await again.end()
            assert len(cluster.jobs()) == 1, "a search of another name, or folder, is left alone"
            await another.end()

    three, all_there = asyncio.run(run())
    assert [worker.state for worker in three] == [State.WAITING] * 3
    assert len({worker.log for worker in three}) == 3
    assert {worker.log for worker in all_there} == {worker.log for worker in three}
    assert len(list((tmp_path / "logs").glob("*_submission.sh"))) == 2
    assert not cluster.jobs()
