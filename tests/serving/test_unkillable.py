"""A process that survives SIGKILL, as one stuck in a GPU driver does (unsloth#3331), is reported and not waited for."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from spectune.serving import guard

PTRACE_SEIZE, PR_SET_CHILD_SUBREAPER = 0x4206, 36  # <sys/ptrace.h>, <sys/prctl.h>
CHILD = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).wait()"


@pytest.fixture
def guard_program(tmp_path: Path) -> Path:
    """The guard itself, with a few seconds of patience in place of a minute."""
    text = Path(guard.__file__).read_text()
    assert text.count("UNKILLABLE_S = 60.0") == 1
    program = tmp_path / "guard.py"
    program.write_text(text.replace("UNKILLABLE_S = 60.0", "UNKILLABLE_S = 3.0"))
    return program


@pytest.fixture
def guarded(guard_program: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", guard_program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    order = {"argv": [sys.executable, "-c", CHILD], "env": dict(os.environ), "log": str(tmp_path / "log")}
    tell(process, **order)
    yield process
    process.communicate(timeout=240)


def tell(process: subprocess.Popen[str], **order: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()


def events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def grandchild(engine: int) -> int:
    for _ in range(600):
        if children := psutil.Process(engine).children():
            return children[0].pid
        time.sleep(0.1)
    raise AssertionError("the engine started no process within a minute")


def test_what_survives_a_kill_is_counted(guarded: subprocess.Popen[str]) -> None:
    told = events(guarded)
    stuck = grandchild(next(told)["pid"])
    # Whoever traces a process holds back its end: until then its parent sees a process that will not go.
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)  # to bury it once the guard has gone
    assert libc.ptrace(PTRACE_SEIZE, stuck, None, None) == 0, os.strerror(ctypes.get_errno())
    try:
        tell(guarded, stop_within_s=0.0)
        stopped = [event for event in told if event["event"] == "stopped"]
        assert guarded.wait(240) == 1
    finally:
        for _ in range(2):  # as its tracer, then as its parent
            with contextlib.suppress(ChildProcessError):
                os.waitpid(stuck, 0)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0)
    assert [(one["left"], one["forced"]) for one in stopped] == [(1, True)]
    assert not psutil.pid_exists(stuck)
