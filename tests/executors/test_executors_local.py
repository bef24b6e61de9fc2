"""Workers on this machine end with whoever started them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

from benchmarks.services.daemon import eventually

STARTS = """
import asyncio, sys
from pathlib import Path
from spectune.executors import LocalExecutor, WorkerCommand

async def main():
    executor = LocalExecutor()
    program = "import time; print('here', flush=True); time.sleep(600)"
    await executor.start(WorkerCommand([sys.executable, "-c", program]), 2, Path("logs"))
    await asyncio.sleep(600)

asyncio.run(main())
"""


def running(folder: Path) -> list[int]:
    """What runs in a folder."""
    found = psutil.process_iter(["cwd", "status"])
    return [p.pid for p in found if p.info["cwd"] == str(folder) and p.info["status"] != psutil.STATUS_ZOMBIE]


def test_none_outlives_a_search_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS], cwd=tmp_path) as owner:
        logs = [tmp_path / "logs" / f"worker-{number}.log" for number in range(2)]
        assert eventually(lambda: all(log.exists() and log.read_text() == "here\n" for log in logs))
        assert len(running(tmp_path)) == 5  # two workers, two guards, their owner
        owner.kill()
    assert eventually(lambda: not running(tmp_path))
