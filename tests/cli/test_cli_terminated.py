"""SIGTERM ends every command like Ctrl-C, also before and after there is anything to put in order."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from readme_commands import ROOT, SPECTUNE

from benchmarks.services.daemon import eventually
from spectune.cli.interruptible import run_interruptible


def test_before_a_run_begins(tmp_path: Path) -> None:
    python = tmp_path / "python"  # an interpreter that does not say whether it has sglang
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nexec sleep 600\n")
    python.chmod(0o755)
    text = (ROOT / "search_spaces/eagle3.yaml").read_text().replace("python: python3", f"python: {python}")
    (tmp_path / "space.yaml").write_text(text)
    with subprocess.Popen(
        [SPECTUNE, "search", "space.yaml"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as search:  # fmt: skip
        assert search.stderr is not None
        assert eventually((tmp_path / "asked").exists)
        search.terminate()
        assert search.wait(240.0) == 130
        assert "Traceback" not in search.stderr.read()


def test_a_second_ctrl_c_while_the_interpreter_ends_is_no_traceback() -> None:
    program = (
        "import atexit, os, signal, sys; from spectune.cli import main\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['spectune', '--version']; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGINT
    assert done.stderr == ""


def test_after_a_run_the_signal_has_its_meaning_again() -> None:
    async def work() -> int:
        return 7

    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        assert run_interruptible(work()) == 7
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_whoever_interrupts_is_told_at_once_what_it_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.sleep(60)
        finally:
            told.append(capsys.readouterr().err)

    assert run_interruptible(work()) is None
    assert told == ["interrupted: ending what is under way; an engine has 8 s to leave, then it is killed\n"]
