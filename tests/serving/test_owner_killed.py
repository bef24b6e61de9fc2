"""What happens to the engine when the program that owns the Server is killed or interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.services.daemon import eventually
from spectune.serving import end_leftovers
from spectune.serving.processes import is_alive, marked_processes

PROGRAMS = Path(__file__).parent / "programs"


@contextmanager
def owner(tmp_path: Path, mode: str, moment: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A process that owns a Server, in a session of its own, and what it told about it."""
    argv = [sys.executable, str(PROGRAMS / "owner.py"), str(tmp_path / "server.log"), mode, moment]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@pytest.mark.parametrize("moment", ["starting", "serving", "stopping"])
@pytest.mark.parametrize("mode", ["ignores-sigterm", "detaches"])
def test_nothing_survives_kill_9_of_the_owner(tmp_path: Path, mode: str, moment: str) -> None:
    if (mode, moment) == ("detaches", "stopping"):
        mode = "children"  # an engine that detaches ends before the owner can be killed while it stops
    with owner(tmp_path, mode, moment) as (process, facts):
        guard = psutil.Process(facts["guard"])
        process.kill()
        process.wait()
        assert eventually(lambda: not marked_processes(facts["server_id"]) and not is_alive(guard))


@pytest.mark.parametrize("moment", ["starting", "serving"])
def test_shared_memory_goes_after_kill_9_of_the_owner(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEGMENT", tmp_path.name)
    made = [Path(f"/dev/shm/sglang_loads_{name}_{tmp_path.name}.shm") for name in ("own", "shared")]
    with owner(tmp_path, "segments", moment) as (process, facts):
        assert eventually(lambda: all(path.exists() for path in made))
        process.kill()
        process.wait()
        assert eventually(lambda: not psutil.pid_exists(facts["guard"]))
    assert not any(path.exists() for path in made)


def test_a_stopped_guard_whose_owner_was_killed_is_woken_by_the_next_spectune(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEGMENT", tmp_path.name)
    made = [Path(f"/dev/shm/sglang_loads_{name}_{tmp_path.name}.shm") for name in ("own", "shared")]
    with owner(tmp_path, "segments", "serving") as (process, facts):
        guard = psutil.Process(facts["guard"])
        guard.suspend()
        assert eventually(lambda: guard.status() == psutil.STATUS_STOPPED)
        end_leftovers()
        assert guard.status() == psutil.STATUS_STOPPED, "its owner lives"
        process.kill()
        process.wait()
        engine = {found.pid for found in marked_processes(facts["server_id"])}
        assert engine, "nobody has ended it"
        assert engine | {guard.pid} <= {ended.pid for ended in end_leftovers()}
        assert not any(psutil.pid_exists(pid) for pid in (guard.pid, *engine))
    assert not any(path.exists() for path in made)


def test_ctrl_c_reaches_the_owner_only(tmp_path: Path) -> None:
    with owner(tmp_path, "children", "serving") as (process, facts):
        tree = [psutil.Process(pid) for pid in facts["pids"]]
        guard = psutil.Process(facts["guard"])
        assert len({os.getsid(pid) for pid in (process.pid, guard.pid, tree[0].pid)}) == 3
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            os.killpg(guard.pid, number)  # even what is sent to the guard itself
        time.sleep(0.3)
        assert is_alive(guard)
        assert all(map(is_alive, tree))
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=240)
        assert eventually(lambda: not marked_processes(facts["server_id"]) and not is_alive(guard))


def test_signals_the_guard_is_deaf_to_have_their_usual_effect_on_the_engine(tmp_path: Path) -> None:
    with owner(tmp_path, "normal", "serving") as (_, facts):
        status = Path("/proc", str(facts["pids"][0]), "status").read_text()
        masks = {line[:6]: int(line[7:], 16) for line in status.splitlines() if line[:6] in {"SigIgn", "SigBlk"}}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD):
            assert not (masks["SigIgn"] | masks["SigBlk"]) >> (number - 1) & 1


def test_a_fork_of_the_owner_that_keeps_the_control_pipe_open_changes_nothing(tmp_path: Path) -> None:
    with owner(tmp_path, "normal", "serving") as (process, facts):
        control = next(
            os.open(f"/proc/{process.pid}/fd/{fd.name}", os.O_WRONLY)
            for fd in Path("/proc", str(process.pid), "fd").iterdir()
            if fd.readlink() == Path("/proc", str(facts["guard"]), "fd/0").readlink()
        )
        process.kill()
        process.wait()
        assert eventually(lambda: not marked_processes(facts["server_id"]))
        os.close(control)
