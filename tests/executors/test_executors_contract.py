"""What every executor must do, on this machine and through a real Slurm."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from spectune.executors import Executor, LocalExecutor, SlurmExecutor, WorkerCommand, WorkerSeen
from spectune.executors.protocol import State

Make = Callable[[], Executor]
LEAVES_WELL = """
import signal, sys, time
def leave(*_):
    print('leaving', flush=True)
    time.sleep(0.3)
    print('left', flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print('here', flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["local", pytest.param("slurm", marks=pytest.mark.services)])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Make:
    if request.param == "local":
        return LocalExecutor
    for name, value in request.getfixturevalue("slurm").env.items():
        monkeypatch.setenv(name, value)
    return lambda: SlurmExecutor({}, name="spectune-test")


async def until(executor: Executor, wanted: Callable[[Sequence[WorkerSeen]], bool]) -> Sequence[WorkerSeen]:
    async with asyncio.timeout(240):
        while True:
            if wanted(seen := await executor.look()):
                return seen
            await asyncio.sleep(0.05)


def all_ended(seen: Sequence[WorkerSeen]) -> bool:
    return all(worker.state.ended for worker in seen)


def program(text: str, **env: str) -> WorkerCommand:
    return WorkerCommand([sys.executable, "-c", text], env)


def test_every_worker_runs_the_command_with_its_variables(make: Make, tmp_path: Path) -> None:
    async def run() -> Sequence[WorkerSeen]:
        executor = make()
        printing = "import os, sys; print(os.getcwd(), os.environ['PLANTED'], file=sys.stderr)"
        await executor.start(program(printing, PLANTED="a secret"), 3, tmp_path / "logs")
        try:
            return await until(executor, all_ended)
        finally:
            await executor.end()

    seen = asyncio.run(run())
    assert [worker.state for worker in seen] == [State.DONE] * 3
    assert len({worker.log for worker in seen}) == 3
    assert {worker.log.read_text() for worker in seen} == {f"{Path.cwd()} a secret\n"}
    assert "PLANTED" not in os.environ
    files = [file for file in tmp_path.rglob("*") if file.suffix != ".log" and "_log." not in file.name]
    assert not any("a secret" in file.read_text() for file in files if file.is_file())


def test_a_worker_that_fails_is_told_from_one_that_is_done(make: Make, tmp_path: Path) -> None:
    async def run() -> Sequence[WorkerSeen]:
        executor = make()
        await executor.start(program("import sys; print('no GPU'); sys.exit(2)"), 1, tmp_path)
        try:
            return await until(executor, all_ended)
        finally:
            await executor.end()

    (worker,) = asyncio.run(run())
    assert worker.state is State.FAILED
    assert worker.words
    assert worker.log.read_text() == "no GPU\n"


def test_workers_are_asked_to_leave_and_given_the_time(make: Make, tmp_path: Path) -> None:
    async def run() -> tuple[Sequence[WorkerSeen], Sequence[WorkerSeen]]:
        executor = make()
        await executor.start(program(LEAVES_WELL), 2, tmp_path)
        try:
            before = await until(executor, lambda seen: all(w.log.exists() and w.log.read_text() for w in seen))
        finally:
            await executor.end()
        return before, await executor.look()

    before, after = asyncio.run(run())
    assert [worker.state for worker in before] == [State.RUNNING] * 2
    assert all(worker.state.ended for worker in after)
    said = [worker.log.read_text().splitlines() for worker in after]
    own = [[line for line in lines if not line.startswith("slurmstepd")] for lines in said]
    assert own == [["here", "leaving", "left"]] * 2


def test_an_interrupted_start_leaves_nothing(make: Make, tmp_path: Path) -> None:
    mark = f"waits-for-{tmp_path.name}-{os.getpid()}"

    async def run() -> None:
        executor = make()
        starting = asyncio.ensure_future(
            executor.start(program(f"import time; time.sleep(600)  # {mark}"), 2, tmp_path)
        )
        await asyncio.sleep(0.01)
        starting.cancel()
        await asyncio.wait([starting])
        await executor.end()

    asyncio.run(run())
    assert not [process for process in psutil.process_iter() if mark in " ".join(command_of(process))]


def command_of(process: psutil.Process) -> Sequence[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_an_executor_that_started_nothing_has_nothing_to_end(make: Make) -> None:
    async def run() -> Sequence[WorkerSeen]:
        executor = make()
        await executor.end()
        return await executor.look()

    assert not asyncio.run(run())
