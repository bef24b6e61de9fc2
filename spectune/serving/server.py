"""One engine: launched, ready, watched, and gone without a trace."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectune.serving.failures import EngineDied, StartupTimeout, log_tail
from spectune.serving.guarded import GuardedTree
from spectune.serving.processes import listens
from spectune.serving.readiness import ReadinessProbe, tell_progress

LAST_WORDS_S = 0.5  # for the rest of a dying engine to finish its log


@dataclass(frozen=True)
class Readiness:
    """The proof that a server serves.

    Attributes:
        startup_s: Seconds from the launch to the first generation.
        answer: What `/generate` answered.
    """

    startup_s: float
    answer: Mapping[str, Any]


class Server(GuardedTree):
    """The lifecycle of one engine launch: `start`, `wait_ready`, use, `stop`; or `async with`.

    Attributes:
        server_id: Mark that every process of the engine carries in its environment.
        host: Address the engine answers at.
        port: Port the engine was told to listen on.
        log_path: File that stdout and stderr of the engine are appended to.
    """

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], *, port: int, log_path: Path, host: str = "127.0.0.1",
        headers: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Describe a launch; nothing is started yet.

        Args:
            argv: Program and arguments.
            env: The complete environment of the engine; nothing else is inherited.
            port: The port `argv` tells the engine to listen on.
            log_path: Where output goes; missing folders are made.
            host: An address at which it listens then.
            headers: What its requests must carry.
        """
        self.server_id = uuid.uuid4().hex
        self.host = host
        self.port = port
        self._headers = headers or {}
        self._launched_at = 0.0
        super().__init__(argv, engine_environment(env, host), self.server_id, log_path)

    @property
    def url(self) -> str:
        """Base URL of the engine's HTTP API."""
        return f"http://{self.host}:{self.port}"

    async def start(self) -> int:
        """Start the engine, see `GuardedTree.start`; the start-up time counts from here."""
        self._launched_at = time.monotonic()
        return await super().start()

    async def wait_ready(self, timeout_s: float, on_progress: Callable[[str], None] | None = None) -> Readiness:
        """Wait until the engine has answered one real generation.

        Args:
            timeout_s: Seconds it may take from now.
            on_progress: Called every second with the last stage in the log, empty where it has none yet.

        Raises:
            EngineDied: Its first process ended; noticed at once.
            StartupTimeout: Time is up.
            PortHeldError: Another program answers on the port.
        """
        prober = ReadinessProbe(self.host, self.port, lambda: listens(self.pids(), self.port), self._headers)
        asking = asyncio.create_task(prober.first_generation())
        tasks: list[asyncio.Task[Any]] = [asking]
        if on_progress is not None:
            tasks.append(asyncio.create_task(tell_progress(self.log_path, on_progress)))
        try:
            either: set[asyncio.Future[Any]] = {asking, self._exited}
            await asyncio.wait(either, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if self._exited.done():
                await asyncio.wait([self._stopped], timeout=LAST_WORDS_S)
                raise EngineDied(self._exited.result(), log_tail(self.log_path))
            if not asking.done():
                raise StartupTimeout(timeout_s, log_tail(self.log_path), prober.last_answer)
            return Readiness(time.monotonic() - self._launched_at, asking.result())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def engine_environment(env: Mapping[str, str], host: str) -> dict[str, str]:
    """`env` with proxies bypassed for the engine's warm-up requests to itself, and left visible in /proc."""
    result = dict(env)
    for variable in ("NO_PROXY", "no_proxy"):
        kept = [entry for entry in result.get(variable, "").split(",") if entry]
        result[variable] = ",".join([*kept, *(name for name in ("127.0.0.1", "localhost", host) if name not in kept)])
    result["SPT_NOENV"] = "1"  # setproctitle would wipe /proc/PID/environ, and with it the mark
    return result
