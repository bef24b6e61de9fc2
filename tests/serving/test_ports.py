from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from spectune.serving import PortHeldError, reserve_ports
from spectune.serving.machine_lock import FOLDER_VARIABLE
from spectune.serving.ports import FIRST_PORT, LAST_PORT, SPACING


def free_port() -> int:
    """A port whose whole block is free: one that spectune would choose."""
    with reserve_ports() as ports:
        return ports.http + 7


def test_blocks_are_disjoint_and_rotate(tmp_path: Path) -> None:
    with reserve_ports(folder=tmp_path) as first, reserve_ports(folder=tmp_path) as second:
        assert abs(first.http - second.http) >= SPACING
        assert first.http < first.nccl < first.http + SPACING
    with reserve_ports(folder=tmp_path) as third:
        assert third.http not in {first.http, second.http}, "the block used longest ago comes next"
    assert third.http + SPACING < 32_768


def test_another_process_does_not_get_the_same_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does one whose temporary files lie elsewhere, as those of every Slurm job may."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "locks"))
    code = "import sys; from spectune.serving import reserve_ports; "
    code += "block = reserve_ports(study='theirs'); print(block.http, flush=True); sys.stdin.read()"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(tmp_path)}
    argv = [sys.executable, "-c", code]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as other:
        assert other.stdout is not None
        theirs = int(other.stdout.readline())
        with reserve_ports() as ours:
            assert ours.http != theirs
        who = rf"{theirs} is reserved by spectune \(pid {other.pid}\) for the study theirs"
        with pytest.raises(PortHeldError, match=who):
            reserve_ports(theirs)
        other.kill()
    with reserve_ports(theirs) as ours:
        assert ours.http == theirs, "a lock ends with its process"


@pytest.mark.parametrize("offset", [0, 100, 233, 239])
def test_a_block_with_a_taken_port_is_passed_over(tmp_path: Path, offset: int) -> None:
    with reserve_ports() as ports:  # nobody else gets it meanwhile
        for http in range(FIRST_PORT, LAST_PORT, SPACING):
            if http != ports.http:
                (tmp_path / f"port-{http}.lock").touch()  # used a moment ago: the block in question would come next
        with socket.create_server(("127.0.0.1", ports.http + offset)), reserve_ports(folder=tmp_path) as other:
            assert other.http != ports.http
        (tmp_path / f"port-{ports.http}.lock").unlink()
        with reserve_ports(folder=tmp_path) as same:
            assert same.http == ports.http


def test_a_wanted_port_held_by_someone_else_names_the_holder(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(PortHeldError) as caught:
            reserve_ports(port, folder=tmp_path)
        assert str(port) in str(caught.value)
        assert f"(pid {os.getpid()})" in str(caught.value)
        assert "name another port" in str(caught.value)
        with pytest.raises(PortHeldError, match=f"port {port} \\(needed beside port {port - 100}\\)"):
            reserve_ports(port - 100, folder=tmp_path)
    with reserve_ports(port, folder=tmp_path) as ports:
        assert ports.http == port


def test_a_wanted_port_in_time_wait_is_free(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as server, socket.create_connection(("127.0.0.1", port)) as client:
        accepted, _ = server.accept()
        accepted.close()  # the side that closes first keeps the port in TIME_WAIT
        assert client.recv(1) == b""
    with reserve_ports(port, folder=tmp_path) as ports:
        assert ports.http == port


@pytest.mark.parametrize("port", [0, 80, 65_500, -1])
def test_impossible_ports(tmp_path: Path, port: int) -> None:
    with pytest.raises(PortHeldError, match=f"but got {port}"):
        reserve_ports(port, folder=tmp_path)


def test_when_every_block_is_reserved(tmp_path: Path) -> None:
    def reserve_one_more_than_there_are() -> None:
        with ExitStack() as held:
            for _ in range(FIRST_PORT, LAST_PORT + SPACING, SPACING):
                held.enter_context(reserve_ports(folder=tmp_path))

    with pytest.raises(PortHeldError, match="no block of ports is free"):
        reserve_one_more_than_there_are()


def test_releasing_twice_is_harmless(tmp_path: Path) -> None:
    ports = reserve_ports(folder=tmp_path)
    ports.release()
    ports.release()
    with reserve_ports(ports.http, folder=tmp_path) as again:
        assert again.http == ports.http
