"""A process tree that ends with its owner: the owner's side of `guard`."""

from __future__ import annotations

import asyncio
import errno
import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from spectune.errors import SpectuneError
from spectune.serving.processes import SERVER_ID_VARIABLE, end_survivors
from spectune.serving.segments import remove_unused

GRACE_S = 8.0
GUARD_MARGIN_S = 70.0  # beyond the grace, before the guard itself is given up; it reports the unkillable after 60 s
LIMITS: Mapping[int | None, str] = {
    errno.EAGAIN: "; raise the limit of processes (`ulimit -u`, or that of the container)",
    errno.EMFILE: "; raise the limit of open files (`ulimit -n`)",
}
"""What an error's number tells of a limit that was met."""


@dataclass(frozen=True)
class Teardown:
    """How a process tree ended.

    Attributes:
        left: Processes that could not be ended; 0 is verified, not assumed.
        forced: Whether any process had to be killed.
        seconds: From the request (or the program's death) until nothing was left.
    """

    left: int
    forced: bool
    seconds: float


class GuardedTree:
    """One program and all its descendants, started at most once; `start`, use, `stop`, or `async with`.

    The program is a child of a guard (see `guard`), not of this process, so that it ends also when this process is
    killed. Nothing is ever left running: not after `stop`, a crash of the program, or SIGKILL to any one of the three.

    Attributes:
        log_path: File that stdout and stderr are appended to.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], mark: str, log_path: Path) -> None:
        """Describe a launch; nothing is started yet.

        Args:
            argv: Program and arguments.
            env: The complete environment; nothing else is inherited.
            mark: Added to the environment as `SPECTUNE_SERVER_ID`, to find processes by.
            log_path: Where output goes; missing folders are made.
        """
        self.log_path = log_path
        self._argv = list(argv)
        self._env = {**env, SERVER_ID_VARIABLE: mark}
        self._mark = mark
        self._guard: subprocess.Popen[bytes] | None = None
        self._known: set[psutil.Process] = set()
        self._segments: set[str] = set()  # of shared memory that the program made

    @property
    def exited(self) -> asyncio.Future[int | None]:
        """Done as soon as the program itself is gone, whatever the reason.

        The result is its exit code, negative for a signal, None if the guard was killed. Cancelling it is harmless.
        """
        return asyncio.shield(self._exited)

    async def start(self) -> int:
        """Start the program; returns the pid of its first process.

        Raises:
            SpectuneError: The program cannot be executed or the log cannot be written.
        """
        assert self._guard is None, "a tree is started once"
        loop = asyncio.get_running_loop()
        self._started: asyncio.Future[int] = loop.create_future()
        self._exited: asyncio.Future[int | None] = loop.create_future()
        self._stopped: asyncio.Future[Teardown] = loop.create_future()
        self._guard = self._start_guard()
        assert self._guard.stdout is not None
        status = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(status), self._guard.stdout)
        self._watcher = loop.create_task(self._watch(status, transport))
        self._order({"argv": self._argv, "env": self._env, "log": str(self.log_path)})
        try:
            return await asyncio.shield(self._started)
        except BaseException:
            await self.stop(grace_s=0.0)
            raise

    async def stop(self, grace_s: float = GRACE_S) -> Teardown:
        """End the whole process tree: SIGTERM, at most `grace_s` seconds, SIGKILL; may be called again at any time.

        Returns:
            How it went; `left` is 0 unless a process resisted SIGKILL for a minute.
        """
        if self._guard is None:
            return Teardown(left=0, forced=False, seconds=0.0)
        self._order({"stop_within_s": grace_s})
        with suppress(ProcessLookupError):
            self._guard.send_signal(signal.SIGCONT)  # whoever has halted it halted what ends the tree
        await asyncio.wait([self._stopped], timeout=grace_s + GUARD_MARGIN_S)
        if not self._stopped.done():
            self._guard.kill()  # the watcher notices and ends what is left
        await asyncio.wait([self._watcher])
        return self._stopped.result()

    def pids(self) -> tuple[int, ...]:
        """The processes of the tree that live now, the program and all descendants; empty if there are none."""
        if self._guard is None:
            return ()
        try:
            tree = psutil.Process(self._guard.pid).children(recursive=True)
        except psutil.Error:
            return ()
        self._known.update(tree)
        return tuple(process.pid for process in tree)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _start_guard(self) -> subprocess.Popen[bytes]:
        program = Path(__file__).with_name("guard.py")
        try:
            self.log_path.parent.mkdir(parents=True, exist_ok=True)
            with self.log_path.open("ab") as log:
                return subprocess.Popen(
                    [sys.executable, "-I", "-S", str(program)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            words = f"cannot start {self._argv[0]!r} with its log in {self.log_path}: {error}"
            raise SpectuneError(words + LIMITS.get(error.errno, "")) from error

    def _order(self, order: Mapping[str, object]) -> None:
        assert self._guard is not None
        assert self._guard.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # the guard has ended, or `_watch` has closed the pipe
            self._guard.stdin.write(json.dumps(order).encode() + b"\n")
            self._guard.stdin.flush()

    async def _watch(self, status: asyncio.StreamReader, transport: asyncio.BaseTransport) -> None:
        """Turn the guard's events into results; when it vanishes without a last word, do its work."""
        assert self._guard is not None
        try:
            async for line in status:
                self._on_event(json.loads(line))
        finally:
            transport.close()
        if not self._exited.done():
            self._exited.set_result(None)
        if not self._started.done():
            self._started.set_exception(SpectuneError(f"the guard of {self._argv[0]!r} was killed before it started"))
        if not self._stopped.done():
            began = time.monotonic()
            left = await asyncio.to_thread(end_survivors, self._mark, self._known)
            await asyncio.to_thread(remove_unused, self._segments)
            self._stopped.set_result(Teardown(left, forced=True, seconds=time.monotonic() - began))
        with suppress(BrokenPipeError):
            assert self._guard.stdin is not None
            self._guard.stdin.close()
        await asyncio.to_thread(self._guard.wait)

    def _on_event(self, event: dict[str, Any]) -> None:
        match event.pop("event"):
            case "started":
                self._started.set_result(event["pid"])
            case "failed":
                words = f"cannot execute the program {self._argv[0]!r}: {event['error']}"
                self._started.set_exception(SpectuneError(words + LIMITS.get(event["errno"], "")))
                self._exited.set_result(None)
                self._stopped.set_result(Teardown(left=0, forced=False, seconds=0.0))
            case "exited":
                self._exited.set_result(event["returncode"])
            case "segment":
                self._segments.add(event["path"])
            case "stopped":
                self._stopped.set_result(Teardown(**event))
