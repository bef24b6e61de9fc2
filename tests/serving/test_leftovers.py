"""Leftovers of engines are found and named; nothing is ended."""

from __future__ import annotations

import asyncio
import mmap
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from spectune.serving import (
    EngineProcess,
    Leftovers,
    PortHolder,
    Segment,
    Server,
    end_leftovers,
    find_leftovers,
    leftover_findings,
)
from spectune.serving.leftovers import SeenProcess, held_ports, ownerless
from spectune.serving.ports import FIRST_PORT, SPACING, block_of, blocks, needed_ports
from spectune.serving.segments import unused_segments
from spectune.serving.sweep import sweep

NOTHING = Leftovers((), (), ())
GUARD = ("python", "-I", "-S", "/x/serving/guard.py")


def seen(*processes: SeenProcess) -> dict[int, SeenProcess]:
    return {process.pid: process for process in processes}


def test_workers_without_a_launcher_are_leftovers() -> None:
    """sglang#2457 #31645: schedulers whose launcher was killed belong to init from then on."""
    found = ownerless(
        seen(
            SeenProcess(1, 0, "init", ("init",), marked=False),
            SeenProcess(10, 1, "sglang::scheduler_TP0", ("sglang::scheduler_TP0",), marked=False),
            SeenProcess(11, 10, "sglang::detokenizer", ("sglang::detokenizer",), marked=False),
            SeenProcess(20, 1, "python3", ("python3", "-m", "sglang.launch_server", "--tp", "8"), marked=False),
            SeenProcess(21, 20, "sglang::scheduler_TP0", ("sglang::scheduler_TP0",), marked=False),
            SeenProcess(30, 1, "python3", ("python3", "/opt/bin/sglang", "serve"), marked=False),
            SeenProcess(31, 30, "sglang::scheduler", ("sglang::scheduler",), marked=False),
            SeenProcess(40, 1, "python3", ("python3", "train.py"), marked=False),
        )
    )
    assert found == [
        EngineProcess(10, "sglang::scheduler_TP0", ours=False),
        EngineProcess(11, "sglang::detokenizer", ours=False),
    ]


def test_a_launcher_as_the_first_process_of_a_container_is_in_charge() -> None:
    launcher = SeenProcess(1, 0, "python3", ("python3", "-m", "sglang.launch_server"), marked=False)
    worker = SeenProcess(7, 1, "sglang::scheduler", ("sglang::scheduler",), marked=False)
    assert ownerless(seen(launcher, worker)) == []


def test_marked_processes_are_in_charge_of_their_guard() -> None:
    """sglang#23627: a killed spectune's engine is told from the one of a running search by its guard."""
    spectune = SeenProcess(2, 1, "spectune", ("python", "spectune"), marked=False)
    guard = SeenProcess(3, 2, "python", GUARD, marked=False)
    running = SeenProcess(4, 3, "python", ("python", "-m", "sglang.launch_server"), marked=True)
    worker = SeenProcess(5, 4, "sglang::scheduler", ("sglang::scheduler",), marked=True)
    left = SeenProcess(9, 1, "python", ("python", "-m", "sglang.launch_server"), marked=True)
    assert ownerless(seen(spectune, guard, running, worker, left)) == [EngineProcess(9, "python", ours=True)]


def test_an_abandoned_guard_is_left_over_with_what_it_guards() -> None:
    guard = SeenProcess(3, 1, "python", GUARD, marked=False, deserted=True)
    engine = SeenProcess(4, 3, "python", ("python", "-m", "sglang.launch_server"), marked=True)
    other = SeenProcess(8, 1, "python", ("python", "train.py"), marked=False, deserted=True)
    assert ownerless(seen(guard, engine, other)) == [
        EngineProcess(3, "python", ours=True), EngineProcess(4, "python", ours=True),
    ]  # fmt: skip


def test_a_circle_of_parents_ends() -> None:
    one, other = SeenProcess(5, 6, "sglang::a", (), marked=False), SeenProcess(6, 5, "x", (), marked=False)
    assert [process.pid for process in ownerless(seen(one, other))] == [5]


@pytest.fixture
def scheduler() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a worker's title and spectune's mark, and no guard above it."""
    program = "import sys; sys.stdin.read()"
    process = subprocess.Popen(
        ["sglang::scheduler_TP0", "-c", program], executable=sys.executable, stdin=subprocess.PIPE,
        env={**os.environ, "SPECTUNE_SERVER_ID": "gone"},
    )  # fmt: skip
    yield process
    process.communicate()


def test_a_real_leftover_is_found_and_left_alone(scheduler: subprocess.Popen[bytes]) -> None:
    (found,) = [process for process in find_leftovers().processes if process.pid == scheduler.pid]
    assert found == EngineProcess(scheduler.pid, "sglang::scheduler_TP0", ours=True)
    (finding,) = leftover_findings(Leftovers((found,), (), ()))
    assert finding.severity == "warning"
    assert finding.way_out == f"kill {scheduler.pid}; sleep 10; kill -9 {scheduler.pid}"
    (finding,) = leftover_findings(Leftovers((found,), (), ()), on_gpus={scheduler.pid})
    assert finding.severity == "fatal"
    assert scheduler.poll() is None


def test_a_leftover_of_ours_is_ended_and_one_of_somebody_else_is_not(scheduler: subprocess.Popen[bytes]) -> None:
    others = {name: value for name, value in os.environ.items() if name != "SPECTUNE_SERVER_ID"}
    with subprocess.Popen(
        ["sglang::scheduler_TP0", "-c", "import sys; sys.stdin.read()"], executable=sys.executable,
        stdin=subprocess.PIPE, env=others,
    ) as unmarked:  # fmt: skip
        assert scheduler.pid in {process.pid for process in end_leftovers()}
        assert not psutil.pid_exists(scheduler.pid), "dead, and reaped as a child of this process"
        assert unmarked.poll() is None
        unmarked.communicate()
    assert scheduler.pid not in {process.pid for process in end_leftovers()}


async def _beside_a_running_engine(log: Path) -> tuple[set[int], set[int]]:
    program = "import sys, time; print('up', flush=True); time.sleep(600)"
    server = Server([sys.executable, "-c", program], dict(os.environ), port=1, log_path=log)
    async with server:
        return set(server.pids()), {process.pid for process in find_leftovers().processes}


def test_the_engine_of_a_running_search_is_no_leftover(tmp_path: Path) -> None:
    running, left = asyncio.run(_beside_a_running_engine(tmp_path / "server.log"))
    assert running
    assert not running & left


def test_segments_that_nobody_uses(tmp_path: Path) -> None:
    for name in ("nccl-ab12", "sglang_loads_x.shm", "torch_12_34_0", "of-somebody-else"):
        (tmp_path / name).write_bytes(b"x" * 4096)
    with (tmp_path / "torch_12_34_0").open("r+b") as file, mmap.mmap(file.fileno(), 4096):
        found = unused_segments(tmp_path)
        assert found == [
            Segment(str(tmp_path / "nccl-ab12"), 4096),
            Segment(str(tmp_path / "sglang_loads_x.shm"), 4096),
        ]
        assert unused_segments(tmp_path / "none") == []
        assert sweep(tmp_path) == (2, 8192)
    assert {path.name for path in tmp_path.iterdir()} == {"torch_12_34_0", "of-somebody-else"}


def test_unused_segments_are_one_line_with_one_command() -> None:
    many = tuple(Segment(f"/dev/shm/sglang_loads_{n}.shm", 1 << 20) for n in range(400))
    (finding,) = leftover_findings(Leftovers((), many, ()))
    assert finding.seen.startswith("400 segments of shared memory (400.0 MiB)")
    assert (finding.name, finding.severity) == ("shared-memory", "warning")
    assert finding.way_out is not None
    assert "-m spectune.serving.sweep" in finding.way_out


def test_blocks_of_ports() -> None:
    assert len(needed_ports()) == len(blocks()) * 9
    assert {block_of(port) for port in needed_ports()} == set(blocks())


def test_a_held_port_of_a_launch_is_seen_with_its_holder() -> None:
    """sglang#37215: somebody listens on a port that a launch would take for its ranks."""
    with socket.socket() as holder:
        for block in reversed(blocks()):
            try:
                holder.bind(("127.0.0.1", block + 100))
                break
            except OSError:
                continue
        holder.listen()
        port = holder.getsockname()[1]
        (found,) = [held for held in held_ports() if held.port == port]
    assert found.pid == os.getpid()
    (finding,) = leftover_findings(Leftovers((), (), (found,)))
    assert (finding.name, finding.severity) == ("ports-taken", "info")
    assert f"{port} by {found.name} (pid {os.getpid()})" in finding.seen


def test_a_wanted_port_that_is_taken_and_no_free_block_are_fatal() -> None:
    held = PortHolder(FIRST_PORT, 7, "other")
    findings = {finding.name: finding for finding in leftover_findings(Leftovers((), (), (held,)), wanted=FIRST_PORT)}
    assert findings["port-taken"].severity == "fatal"
    assert "other (pid 7)" in findings["port-taken"].seen
    everywhere = tuple(PortHolder(port, None, None) for port in range(FIRST_PORT, blocks()[-1] + 1, SPACING))
    (finding,) = leftover_findings(Leftovers((), (), everywhere))
    assert (finding.name, finding.severity) == ("no-ports", "fatal")


@pytest.mark.parametrize(("ephemeral", "said"), [((32768, 60999), False), ((10_000, 61_000), True), (None, False)])
def test_an_ephemeral_range_over_the_ports_of_launches(ephemeral: tuple[int, int] | None, said: bool) -> None:
    """sglang#37215 #10693 #7418 #17402: outgoing connections take ports from 10000 on, the ranks' among them."""
    findings = leftover_findings(NOTHING, ephemeral=ephemeral)
    assert [finding.name for finding in findings] == (["ephemeral-ports"] if said else [])
