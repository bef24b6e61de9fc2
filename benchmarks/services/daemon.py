"""Daemons of one's own: in the foreground, found when they are ready, gone at the end."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

READY_S = 240.0  # a busy machine starts programs slowly; nothing but a defect takes so long
END_S = 60.0
_PORTS = iter(random.sample(range(61_000, 65_536), 4536))  # none that Linux gives to outgoing connections


class Daemon:
    """One program that serves until it is stopped, and can be started again."""

    def __init__(
        self, argv: Sequence[str | Path], log: Path, *, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> None:
        self._argv, self._log, self._env, self._user = [str(word) for word in argv], log, env, user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, ready: Callable[[], bool]) -> None:
        """Start it and wait until it is ready."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                user=self._user, group=self._user, extra_groups=None if self._user is None else [],
            )  # fmt: skip
        process = self._process
        if not eventually(lambda: process.poll() is not None or ready(), READY_S) or process.poll() is not None:
            self.stop()
            raise RuntimeError(f"{self._argv[0]} is not ready:\n{self._log.read_text(errors='replace')[-4000:]}")

    def stop(self, signal: int = 15) -> None:
        """End it, with SIGKILL if it does not leave; nothing happens when it is not running."""
        if self._process is None:
            return
        self._process.send_signal(signal)
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def eventually(condition: Callable[[], bool], within_s: float = READY_S) -> bool:
    """Whether a condition comes true within a time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def free_port() -> int:
    """Return a port of the loopback interface that nobody uses, and that nobody is given before it is used."""
    for port in _PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("every port has been asked for")


def listens(port: int) -> bool:
    """Whether somebody accepts connections."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
