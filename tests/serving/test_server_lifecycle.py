"""Server against real process trees that misbehave in every way engines do."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from spectune.errors import SpectuneError
from spectune.serving import EngineDied, FailureClass, PortHeldError, Server, StartupTimeout, Teardown, reserve_ports
from spectune.serving.processes import is_alive, listens, marked_processes

PROGRAMS = Path(__file__).parent / "programs"
READY_S = 240.0  # generous: a loaded machine starts a Python slowly

Use = Callable[[Server], Coroutine[Any, Any, Any]]


def serve(
    tmp_path: Path, mode: str, use: Use, env: dict[str, str] | None = None, grace_s: float = READY_S
) -> tuple[Any, Teardown, Server]:
    """Start the fake engine in `mode`, use it, stop it, and check that nothing of it is left."""

    async def whole_life() -> tuple[Any, Teardown, Server]:
        with reserve_ports() as ports:
            argv = [sys.executable, str(PROGRAMS / "fake_engine.py"), "--port", str(ports.http), "--mode", mode]
            server = Server(argv, env or dict(os.environ), port=ports.http, log_path=tmp_path / "trial" / "server.log")
            async with server:
                result = await use(server)
                teardown = await server.stop(grace_s=grace_s)
            return result, teardown, server

    result, teardown, server = asyncio.run(whole_life())
    assert teardown.left == 0
    assert marked_processes(server.server_id) == []
    assert server.pids() == ()
    return result, teardown, server


async def become_ready(server: Server) -> tuple[int, ...]:
    await server.wait_ready(READY_S)
    return server.pids()


async def until(condition: Callable[[], bool]) -> None:
    """Poll with a deadline."""
    async with asyncio.timeout(READY_S):
        while not condition():  # noqa: ASYNC110 (what is waited for happens in other processes)
            await asyncio.sleep(0.05)


def test_it_becomes_ready_and_stops_by_itself_when_asked(tmp_path: Path) -> None:
    async def use(server: Server) -> Any:
        readiness = await server.wait_ready(READY_S)
        assert not server.exited.done()
        return readiness

    readiness, teardown, _ = serve(tmp_path, "normal", use)
    assert readiness.answer["meta_info"]["completion_tokens"] == 4
    assert readiness.startup_s > 0
    assert not teardown.forced


@pytest.mark.parametrize(
    ("mode", "forced", "processes"),
    [
        ("ignores-sigterm", True, 1),
        ("children", True, 3),
        ("detaches", True, 2),
        ("zombies", False, 6),
        ("floods", False, 1),
    ],
)
def test_teardown_takes_the_whole_tree(tmp_path: Path, mode: str, forced: bool, processes: int) -> None:
    pids, teardown, _ = serve(tmp_path, mode, become_ready, grace_s=2.0 if forced else READY_S)
    assert len(pids) == processes
    assert teardown.forced is forced
    assert not any(psutil.pid_exists(pid) for pid in pids), "reaped, not only dead"


def test_shared_memory_of_an_ended_engine_is_removed_unless_another_uses_it(tmp_path: Path) -> None:
    mark = tmp_path.parent.name
    own, shared = segments_of(mark)

    async def use(server: Server) -> Any:
        await server.wait_ready(READY_S)
        assert own.exists()
        return shared.open("rb")

    used, _, _ = serve(tmp_path, "segments", use, {**os.environ, "SEGMENT": mark})
    try:
        assert not own.exists()
        assert shared.exists()
    finally:
        used.close()
        shared.unlink()


def segments_of(mark: str) -> list[Path]:
    return [Path(f"/dev/shm/sglang_loads_{name}_{mark}.shm") for name in ("own", "shared")]


def test_shared_memory_of_an_engine_that_died_before_it_was_ready_is_removed(tmp_path: Path) -> None:
    async def use(server: Server) -> None:
        with pytest.raises(EngineDied):
            await server.wait_ready(3600)

    serve(tmp_path, "segments-then-dies", use, {**os.environ, "SEGMENT": tmp_path.parent.name})
    assert not any(path.exists() for path in segments_of(tmp_path.parent.name))


def test_shared_memory_is_removed_after_the_guard_was_killed(tmp_path: Path) -> None:
    async def use(server: Server) -> None:
        await server.wait_ready(READY_S)
        assert server._guard is not None
        server._guard.kill()

    serve(tmp_path, "segments", use, {**os.environ, "SEGMENT": tmp_path.parent.name})
    assert not any(path.exists() for path in segments_of(tmp_path.parent.name))


def test_shared_memory_that_the_engine_only_uses_stays(tmp_path: Path) -> None:
    others = Path(f"/dev/shm/sglang_loads_others_{tmp_path.parent.name}.shm")
    others.write_bytes(bytes(4096))
    try:
        serve(tmp_path, "normal", become_ready, {**os.environ, "MAPS": str(others)})
        assert others.exists()
    finally:
        others.unlink()


def test_death_during_start_up_is_noticed_long_before_the_timeout(tmp_path: Path) -> None:
    async def use(server: Server) -> EngineDied:
        with pytest.raises(EngineDied) as caught:
            await server.wait_ready(3600)
        return caught.value

    began = time.monotonic()
    error, _, _ = serve(tmp_path, "dies", use)
    assert time.monotonic() - began < 60
    assert error.returncode == 1
    failure = error.failure([("index k out of range", "unsupported", "too many nodes")])
    assert failure.failure_class is FailureClass.UNSUPPORTED
    assert failure.message == "too many nodes: RuntimeError: selected index k out of range"
    assert "During handling" not in failure.message
    assert "RuntimeError: selected index k out of range" in str(error)


def test_what_a_dying_engine_leaves_behind_is_ended_at_once(tmp_path: Path) -> None:
    async def use(server: Server) -> int | None:
        with pytest.raises(EngineDied):
            await server.wait_ready(3600)
        await server._stopped  # without being asked to stop
        return await server.exited

    returncode, teardown, _ = serve(tmp_path, "dies-with-children", use)
    assert returncode == -signal.SIGKILL
    assert teardown.forced


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("never-ready", "nothing listens on port"),
        ("never-generates", "/generate answered JSON that is not a generation"),
        ("zero-tokens", "/generate answered without generating a token"),
    ],
)
def test_only_a_real_generation_is_ready(tmp_path: Path, mode: str, words: str) -> None:
    async def use(server: Server) -> StartupTimeout:
        if mode == "never-ready":
            await until(lambda: "loading" in server.log_path.read_text())
        else:
            await until(lambda: listens(server.pids(), server.port))
        for patience_s in (1.0, 10.0, READY_S):  # for it to be asked once
            with pytest.raises(StartupTimeout) as caught:
                await server.wait_ready(patience_s)
            if words in str(caught.value):
                break
        return caught.value

    error, _, _ = serve(tmp_path, mode, use)
    assert words in str(error)
    assert "loading weights" in error.log_tail
    assert error.failure([]).failure_class is FailureClass.STARTUP_TIMEOUT


def test_progress_is_the_last_stage_in_the_log(tmp_path: Path) -> None:
    told: list[str] = []

    async def use(server: Server) -> None:
        await until(lambda: "loading" in server.log_path.read_text())
        waiting = asyncio.ensure_future(server.wait_ready(3600, on_progress=told.append))
        await until(lambda: len(told) > 1)  # every second, also when nothing has changed
        waiting.cancel()
        await asyncio.wait([waiting])

    serve(tmp_path, "never-ready", use)
    assert set(told) == {"loading weights"}


def test_exited_is_done_when_the_engine_dies_while_serving(tmp_path: Path) -> None:
    async def use(server: Server) -> int | None:
        await server.wait_ready(READY_S)
        impatient = asyncio.ensure_future(server.exited)
        impatient.cancel()  # a cancelled bench must not take the news from the others
        os.kill(server.pids()[0], signal.SIGSEGV)
        return await asyncio.wait_for(server.exited, READY_S)

    returncode, teardown, _ = serve(tmp_path, "normal", use)
    assert returncode == -signal.SIGSEGV
    assert not teardown.forced


def test_proxies_of_the_environment_are_bypassed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "example.org")
    monkeypatch.setenv("NO_PROXY", "example.org")

    _, _, server = serve(tmp_path, "warms-up", become_ready, env=dict(os.environ))
    assert "warm-up request answered 200" in server.log_path.read_text()
    assert server._env["no_proxy"].split(",")[:2] == ["example.org", "127.0.0.1"]


def test_a_stranger_on_the_port_is_named(tmp_path: Path) -> None:
    with reserve_ports() as ports, socket.create_server(("127.0.0.1", ports.http)):

        async def use() -> None:
            argv = [sys.executable, "-c", "import time; time.sleep(3600)"]
            async with Server(argv, os.environ, port=ports.http, log_path=tmp_path / "log") as server:
                with pytest.raises(PortHeldError, match=rf"port {ports.http} is held by .*\(pid {os.getpid()}\)"):
                    await server.wait_ready(READY_S)

        asyncio.run(use())


def test_a_program_that_cannot_be_executed(tmp_path: Path) -> None:
    async def use() -> None:
        server = Server(["/nowhere/python"], {}, port=1, log_path=tmp_path / "log")
        with pytest.raises(SpectuneError, match="cannot execute the program '/nowhere/python'"):
            await server.start()
        assert (await server.stop()).left == 0

    asyncio.run(use())


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    server = Server(["true"], {}, port=1, log_path=tmp_path / "file" / "log")
    with pytest.raises(SpectuneError, match="cannot start 'true' with its log in"):
        asyncio.run(server.start())


def test_a_limit_that_keeps_a_program_from_starting_is_named(tmp_path: Path) -> None:
    async def use() -> None:
        server = Server(["true"], {}, port=1, log_path=tmp_path / "log")
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), before[1]))  # noqa: PTH208
        try:
            with pytest.raises(SpectuneError, match=r"Too many open files.*; raise the limit of open .*`ulimit -n`"):
                await server.start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)

    asyncio.run(use())


def test_two_servers_live_side_by_side(tmp_path: Path) -> None:
    async def use(first: Server) -> None:
        await first.wait_ready(READY_S)
        with reserve_ports() as ports:
            assert abs(ports.http - first.port) >= 300
            argv = [sys.executable, str(PROGRAMS / "fake_engine.py"), "--port", str(ports.http)]
            async with Server(argv, os.environ, port=ports.http, log_path=tmp_path / "second.log") as second:
                await second.wait_ready(READY_S)
            assert not first.exited.done()
            assert len(first.pids()) == 1

    serve(tmp_path, "normal", use)


def test_killing_the_guard_ends_the_engine_too(tmp_path: Path) -> None:
    async def use(server: Server) -> tuple[list[psutil.Process], int | None]:
        await server.wait_ready(READY_S)
        tree = [psutil.Process(pid) for pid in server.pids()]
        assert server._guard is not None
        server._guard.kill()
        return tree, await asyncio.wait_for(server.exited, READY_S)

    (tree, returncode), teardown, _ = serve(tmp_path, "detaches", use)
    assert returncode is None
    assert teardown.forced
    assert len(tree) == 2
    assert not any(is_alive(process) for process in tree)


def test_a_guard_that_was_halted_ends_its_tree_all_the_same(tmp_path: Path) -> None:
    async def use(server: Server) -> list[psutil.Process]:
        await server.wait_ready(READY_S)
        assert server._guard is not None
        guard = psutil.Process(server._guard.pid)
        guard.suspend()
        await until(lambda: guard.status() == psutil.STATUS_STOPPED)
        return [psutil.Process(pid) for pid in server.pids()]

    tree, teardown, _ = serve(tmp_path, "normal", use)
    assert (teardown.left, teardown.forced) == (0, False)  # by the guard, which was not given up
    assert not any(is_alive(process) for process in tree)


def test_the_guard_starts_fast_and_imports_nothing_of_spectune() -> None:
    program = Path(sys.modules["spectune.serving.server"].__file__ or "").with_name("guard.py")
    before = os.times().children_user + os.times().children_system
    done = subprocess.run([sys.executable, "-I", "-S", str(program)], stdin=subprocess.DEVNULL, check=False, timeout=60)
    assert done.returncode == 0
    assert os.times().children_user + os.times().children_system - before < 0.5  # seconds of CPU; about 0.03 here
