"""What ends a search: Ctrl-C, SIGTERM, a closed terminal, also twice at once; and what does not."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from readme_commands import SPECTUNE
from search_simulated import SPACE, write

from benchmarks.services.daemon import eventually
from spectune.cli.interruptible import run_interruptible


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_twice_is_raised_nowhere(number: signal.Signals) -> None:
    """Ctrl-C reaches a program twice where a wrapper hands it on, and a library may be at work then."""
    raised: list[BaseException] = []

    def as_a_library_does() -> None:
        try:
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)
        except BaseException as error:  # noqa: BLE001 (that is the point)
            raised.append(error)

    async def work() -> str:
        asyncio.get_running_loop().call_soon(as_a_library_does)
        await asyncio.Event().wait()
        return "done"

    assert run_interruptible(work()) is None
    assert raised == []


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As under `nohup`."""

    async def work() -> str:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        return "done"

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run_interruptible(work()) == "done"
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_search_in_virtual_time_ends_too(number: signal.Signals, tmp_path: Path) -> None:
    more = {"speculative-num-steps": {"from": 1, "to": 7}, "speculative-num-draft-tokens": {"from": 2, "to": 32}}
    write(tmp_path, budget={"trials": 1000}, search=SPACE["search"] | more)  # more than anybody waits for
    first = tmp_path / "studies/sim/trials/0000-baseline/result.json"
    words = [SPECTUNE, "search", "sim.yaml", "--sampler", "random"]  # which goes on to the end
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as search:
        assert eventually(first.exists)
        search.send_signal(number)
        _, said = search.communicate()
    assert search.returncode == 130, said
    assert "interrupted: launches kept:" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("lost", ["2>/dev/full", "2>&1 >answer | head -1"])
def test_a_search_whose_progress_nobody_takes_goes_on(tmp_path: Path, lost: str) -> None:
    """The disk of its log is full, or the terminal is gone: no reason to end a night's work."""
    write(tmp_path, budget={"trials": 2})
    script = f"{SPECTUNE} search sim.yaml {lost}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert len(list((tmp_path / "studies/sim/trials").glob("*/result.json"))) == 2
    answer = tmp_path / "answer"
    assert "report: " in (answer.read_text() if answer.exists() else done.stdout)


def test_a_search_that_may_start_no_threads_says_so(tmp_path: Path) -> None:
    """As under a small `ulimit -v`: no system has room for stacks of this size."""
    write(tmp_path, virtual=False, budget={"trials": 2})
    limited = "import threading; threading.stack_size(1 << 46); from spectune.cli import main; main()"
    argv = [sys.executable, "-c", limited, "search", "sim.yaml"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith("spectune: this process may start no more threads; see `ulimit -v`")
    assert "Traceback" not in done.stderr
