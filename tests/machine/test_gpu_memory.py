"""GPU memory before and after a launch, on a driver that says whatever a test wants; nobody's process is touched."""

from __future__ import annotations

import os
import subprocess
import sys

from fake_driver import FakeDriver

FREE = ("count 2", "memory_total 81920", "memory_used 400")
PROGRAM = """
import asyncio, json, os, sys
from pathlib import Path
from spectune.errors import SpectuneError
from spectune.serving import GpuMemory

state, told = Path(os.environ["FAKE_NVML"]), []
memory = GpuMemory({count}, {variable!r}, patience_s=60 if {freed} else 0.2, back_s=0.2, poll_s=0.05)

def says(words):
    told.append(words)
    if {freed} and len(told) == 2:
        state.write_text({free!r})

async def launch():
    try:
        await memory.wait_until_free(says)
    except SpectuneError as error:
        return str(error)
    state.write_text(state.read_text() + {after!r})
    return await memory.wait_until_back()

print(json.dumps([asyncio.run(launch()), told]))
"""


def launched(
    driver: FakeDriver, *, count: int = 2, variable: str | None = None, freed: bool = False, after: str = ""
) -> tuple[str | None, list[str]]:
    free = "\n".join(FREE) + "\n"
    words = PROGRAM.format(count=count, variable=variable, freed=freed, free=free, after=after)
    ended, told = driver.answer(words)
    return ended, told


def holding(driver: FakeDriver, *processes: str) -> None:
    used = "1.memory_used 60000" if processes else "1.memory_used 400"
    driver.says("count 2", "memory_total 81920", used, "memory_used 400", *processes)


def test_free_gpus_are_not_waited_for(driver: FakeDriver) -> None:
    driver.says(*FREE)
    assert launched(driver) == (None, [])


def test_somebody_elses_process_is_waited_for_and_then_named(driver: FakeDriver) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        holding(driver, f"1.processes {other.pid}:59600")
        ended, told = launched(driver)
        assert other.poll() is None, "it is never touched"
        other.communicate()
    assert ended is not None
    assert f"(pid {other.pid}) with 58.2 GiB is on GPU 1, for 0 minutes now" in ended
    assert "the same command goes on" in ended
    assert told[0].startswith("waiting 0 s: ")


def test_the_launch_begins_as_soon_as_the_memory_is_free(driver: FakeDriver) -> None:
    holding(driver, f"1.processes {os.getpid()}:59600")
    ended, told = launched(driver, freed=True)
    assert ended is None
    assert len(told) == 2


def test_a_holder_that_cannot_be_seen_is_said_so(driver: FakeDriver) -> None:
    driver.says("count 2", "memory_total 81920", "1.memory_used 60000", "memory_used 400")
    ended, _ = launched(driver)
    assert ended is not None
    assert "58.6 GiB of GPU 1 are in use, by a process that cannot be seen from here" in ended


def test_other_gpus_than_the_launchs_are_nobodys_business(driver: FakeDriver) -> None:
    holding(driver, f"1.processes {os.getpid()}:59600")
    assert launched(driver, count=1) == (None, [])
    assert launched(driver, count=1, variable="0") == (None, [])
    assert launched(driver, count=1, variable="1")[0] is not None
    assert launched(driver, count=0) == (None, [])


def test_memory_that_does_not_come_back_is_named_after_the_end(driver: FakeDriver) -> None:
    driver.says("count 2", "memory_total 81920", "memory_used 400")
    after = f"0.memory_used 5000\n0.processes {os.getpid()}:4600\n"
    state = driver.state.read_text()
    driver.state.write_text(state.replace("memory_used 400\n", "") + "1.memory_used 400\n")
    ended, told = launched(driver, after=after)
    assert told == []
    assert ended is not None
    assert ended.startswith("4.9 GiB of GPU memory did not come back when the engine had ended: ")
    assert f"(pid {os.getpid()})" in ended


def test_a_machine_without_a_driver_waits_for_nothing(driver: FakeDriver) -> None:
    driver.says("init 9", *FREE)
    assert launched(driver) == (None, [])
