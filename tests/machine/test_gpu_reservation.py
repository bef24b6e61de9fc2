"""Groups of GPUs between processes, on a driver that says whatever a test wants; nobody's process is touched."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_driver import FakeDriver
from readme_commands import SPECTUNE

from spectune.errors import SpectuneError
from spectune.machine import Gpu, GpuProcess, Gpus
from spectune.serving import GpuGroup, held_locks, reserve_gpus
from spectune.serving.machine_lock import FOLDER_VARIABLE

# Reserves what it is told, and says what it got, or what it said.
TAKES = """
import asyncio, json, os, sys
from spectune.errors import SpectuneError
from spectune.serving import reserve_gpus
count, variable, patience_s = json.loads(sys.argv[1])
notes = []
try:
    group = asyncio.run(reserve_gpus(
        count, "theirs", notes.append, variable=variable, poll_s=0.02, program_s=patience_s, spectune_s=patience_s
    ))
    print(json.dumps([[gpu.index for gpu in group.gpus], group.variables, notes]), flush=True)
    sys.stdin.read()
except SpectuneError as error:
    print(json.dumps([str(error), {}, notes]), flush=True)
"""
# Takes and gives back again and again, and writes down when, while nobody else can have the same.
TAKES_TURNS = """
import asyncio, os, random, sys
from spectune.serving import reserve_gpus
draw, log = random.Random(int(sys.argv[1])), os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND)
def tell(what, group):
    os.write(log, f"{what} {os.getpid()} {' '.join(str(gpu.index) for gpu in group.gpus)}\\n".encode())
for _ in range(6):
    order = draw.sample(range(4), 4)
    group = asyncio.run(reserve_gpus(
        draw.randint(1, 4), "s", lambda words: None, variable=",".join(map(str, order)), poll_s=0.001))
    tell("takes", group)
    tell("gives", group)
    group.release()
"""


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "locks"))
    return tmp_path / "locks"


@contextmanager
def other(
    driver: FakeDriver, count: int, variable: str | None = None, patience_s: float = 60.0
) -> Iterator[tuple[subprocess.Popen[str], list[Any]]]:
    """Another process that reserves GPUs, and what it said of it."""
    argv = [sys.executable, "-W", "error", "-c", TAKES, json.dumps([count, variable, patience_s])]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=driver.environment()
    ) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
        process.communicate()


def here(gpus: list[Gpu], count: int, **more: Any) -> GpuGroup:
    """Reserve in this process, of GPUs that are as they are."""
    quick = {"poll_s": 0.01, "program_s": 0.03, "spectune_s": 0.06, "read": lambda: Gpus(tuple(gpus))}
    return asyncio.run(reserve_gpus(count, "ours", lambda words: None, **(quick | more)))


def gpus(count: int, **fields: Any) -> list[Gpu]:
    return [Gpu(index, uuid=f"GPU-{index}", memory_total_mib=80000, **fields) for index in range(count)]


def test_processes_get_groups_of_their_own_and_then_wait(driver: FakeDriver, locks: Path) -> None:
    driver.says("count 4")
    with other(driver, 2) as (_, first), other(driver, 2) as (_, second):
        assert first[:2] == [[0, 1], {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0,1"}]
        assert second[0] == [2, 3]
        with other(driver, 2, patience_s=1.0) as (_, (error, _, notes)):
            assert error.count("spectune (pid ") == 2
            assert "for the study theirs has GPU 0, 1; " in error
            assert "for 0 minutes now. spectune ends no other program" in error
            assert len(notes) == 1
            assert notes[0].startswith("waiting 0 s: spectune (pid ")
    assert list(locks.iterdir()) == []


def test_the_group_of_a_killed_process_is_free_at_once(driver: FakeDriver, locks: Path) -> None:
    driver.says("count 2")
    with other(driver, 2) as (process, (numbers, variables, _)):
        assert (numbers, variables) == ([0, 1], {}), "a launch on the whole machine needs no variable"
        process.send_signal(signal.SIGKILL)
    assert len(list(locks.iterdir())) == 2
    assert held_locks() == {}
    with other(driver, 1, patience_s=0.1) as (_, (numbers, _, _)):
        assert numbers == [0]


def test_any_order_of_any_requests_comes_to_an_end_and_nothing_is_shared(driver: FakeDriver, locks: Path) -> None:
    driver.says("count 4")
    log = driver.state.with_name("log")
    log.touch()
    running = [
        subprocess.Popen([sys.executable, "-c", TAKES_TURNS, str(seed), str(log)], env=driver.environment())
        for seed in range(4)
    ]
    for process in running:
        assert process.wait(timeout=600) == 0
    held: dict[str, str] = {}
    for line in log.read_text().splitlines():
        what, pid, *numbers = line.split()
        for number in numbers:
            assert held.pop(number, None) == (pid if what == "gives" else None), line
            if what == "takes":
                held[number] = pid
    assert log.read_text().count("takes") == 24
    assert list(locks.iterdir()) == []


def test_a_stranger_is_waited_for_named_and_never_touched(driver: FakeDriver, locks: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        driver.says("count 2", "memory_total 81920", f"0.processes {stranger.pid}:60000", "0.memory_used 60400")
        with other(driver, 1) as (_, (numbers, _, _)):
            assert numbers == [1], "another GPU is free"
            with other(driver, 1, patience_s=0.1) as (_, (error, _, _)):
                assert "for the study theirs has GPU 1; python" in error
                assert f"(pid {stranger.pid}) with 58.6 GiB is on GPU 0, for 0 minutes now" in error
        assert stranger.poll() is None
        stranger.communicate()


def test_a_gpu_that_nobody_is_on_comes_before_one_with_something_small(locks: Path) -> None:
    one, two, three = gpus(3)
    desktop = Gpu(0, uuid="GPU-0", memory_total_mib=80000, memory_used_mib=30, processes=(GpuProcess(7, "Xorg", 20),))
    assert [gpu.index for gpu in here([desktop, two, three], 1).gpus] == [1]
    assert len(here([desktop, two, three], 3).gpus) == 3, "but it is no reason to wait"
    assert one.index == 0


def test_own_engines_are_told_by_the_lock_and_not_taken_for_strangers(locks: Path) -> None:
    """Another spectune's launch fills its GPUs; it is waited for as a spectune."""
    full = gpus(2, memory_used_mib=70000, processes=(GpuProcess(5, "sglang::schedul", 70000),))
    with pytest.raises(SpectuneError, match=r"^sglang::schedul \(pid 5\) with 136\.7 GiB is on GPU 0, 1, for"):
        here(full, 2)
    mine = here(gpus(2), 2)
    with pytest.raises(SpectuneError, match=rf"^spectune \(pid {os.getpid()}\) for the study ours has GPU 0, 1, for"):
        here(full, 2, program_s=-1.0)
    mine.release()


@pytest.mark.parametrize(
    ("variable", "count", "named"),
    [
        (None, 1, "0"),
        (None, 4, None),
        ("2,3", 2, "2,3"),
        ("3,2,1", 2, "3,2"),
        ("GPU-3,GPU-1", 1, "3"),
        ("0,1,2,3", 4, "0,1,2,3"),
        ("MIG-a,MIG-b", 1, "MIG-a"),
        ("MIG-GPU-0/1/0,MIG-GPU-0/2/0", 2, "MIG-GPU-0/1/0,MIG-GPU-0/2/0"),
    ],
)
def test_only_gpus_that_spectune_is_shown_are_taken(
    variable: str | None, count: int, named: str | None, locks: Path
) -> None:
    group = here(gpus(4), count, variable=variable)
    wanted = {} if named is None else {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": named}
    assert group.variables == wanted
    assert group.part == (group.gpus if count < 4 else ()), "all of a machine is the machine, however it was named"


@pytest.mark.parametrize(
    ("variable", "count", "said"),
    [
        (None, 5, "engine.gpus asks for 5 GPUs, but this machine has 4 that work"),
        ("0,1", 3, "engine.gpus asks for 3 GPUs, but CUDA_VISIBLE_DEVICES=0,1 shows 2 that work"),
        ("", 1, "engine.gpus asks for 1 GPU, but CUDA_VISIBLE_DEVICES= shows 0 that work"),
        ("1,1", 2, "engine.gpus asks for 2 GPUs, but CUDA_VISIBLE_DEVICES=1,1 shows 1 that work"),
    ],
)
def test_too_few_are_said_at_once(variable: str | None, count: int, said: str, locks: Path) -> None:
    with pytest.raises(SpectuneError) as caught:
        here(gpus(4), count, variable=variable)
    assert str(caught.value) == said


def test_a_lost_gpu_is_never_taken(locks: Path) -> None:
    machine = [Gpu(0, problem="GPU is lost"), *gpus(3)[1:]]
    assert [gpu.index for gpu in here(machine, 2).gpus] == [1, 2]
    with pytest.raises(SpectuneError, match="has 2 that work; GPU 0: GPU is lost"):
        here(machine, 3)


def test_a_machine_whose_driver_says_nothing_is_one_group(locks: Path) -> None:
    group = here([], 2)
    assert (group.gpus, group.variables) == ((), {})
    with pytest.raises(SpectuneError, match="has GPU 0"):
        here([], 1)
    group.release()
    assert here([], 0).locks == ()


def test_doctor_says_who_has_which_gpus(driver: FakeDriver, locks: Path, tmp_path: Path) -> None:
    driver.says("count 4")

    def told() -> list[str]:
        done = driver.run(SPECTUNE, "doctor", "--json", cwd=tmp_path)
        return [one["seen"] for one in json.loads(done.stdout)["findings"] if one["name"] == "gpu-reserved"]

    with other(driver, 2, variable="1,2,3") as (process, _):
        assert told() == [f"spectune (pid {process.pid}) for the study theirs has GPU 1, 2"]
        process.send_signal(signal.SIGKILL)
    assert list(locks.iterdir())
    assert told() == [], "what a killed one left is harmless"
