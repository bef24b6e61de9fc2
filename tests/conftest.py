"""Fixtures of all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from engine_lives import Lives, Program
from hypothesis import settings
from private_slurm import Slurm

from benchmarks.services.postgresql import PostgreSQL
from spectune.engines.cpu_reference import CPU_REFERENCE, Runtime, install

for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:  # behind `&` in a script, or under `nohup`
        signal.signal(number, lambda *_: None)  # as good as ignored, but what tests start and then interrupt heeds it

settings.register_profile("any machine", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def cpu_runtime() -> Runtime:
    """The cpu-reference runtime in `$SPECTUNE_HOME`; the first use on a machine installs it."""
    return install(CPU_REFERENCE)


@pytest.fixture(scope="session")
def real_lives(cpu_runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    """The launches of the real engine that tests share."""
    program = Program(
        (str(cpu_runtime.python), "-m", "sglang.launch_server"),
        os.environ | cpu_runtime.env | {"CONTRACT_MARK": "visible"},
        {
            **cpu_runtime.args,
            "model-path": "target",
            "dtype": "float32",
            "context-length": 2048,
            "decode-log-interval": 5,
            "sleep-on-idle": True,  # or it keeps a core from the other tests until the last of them has ended
        },
        cpu_runtime.models,
    )
    lives = Lives(program, tmp_path_factory.mktemp("real"))
    yield lives
    lives.close()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL of the tests' own; for tests with the mark `services`."""
    server = PostgreSQL()
    yield server
    server.close()


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """A Slurm of one node, the tests' own; for tests with the mark `services`."""
    cluster = Slurm()
    yield cluster
    cluster.close()
