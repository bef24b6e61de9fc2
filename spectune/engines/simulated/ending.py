"""How the simulated engine ends when told to: SIGTERM drains, SIGINT waits for connections (facts, section 4.5)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping

from spectune.engines.simulated.failing import STARTING
from spectune.engines.simulated.fault_actions import FaultActions
from spectune.engines.simulated.http_server import EngineHttp
from spectune.engines.simulated.log import EngineLog
from spectune.engines.simulated.workers import Workers

DRAIN_POLL_S = 5.0  # between two looks at the running requests, the first one included; never longer in real time


class Ending:
    """The signals of one engine, and what follows from them.

    Attributes:
        begun: Set once it is told to end.
    """

    def __init__(
        self,
        http: EngineHttp,
        faults: FaultActions,
        workers: Workers,
        log: EngineLog,
        *,
        env: Mapping[str, str],
        time_scale: float,
    ) -> None:
        """Take what has to end.

        Args:
            http: Its requests.
            faults: Those of the shutdown.
            workers: Killed when a signal kills the engine.
            log: Where its lines go.
            env: Of the launch; `SGL_FORCE_SHUTDOWN` skips the draining.
            time_scale: Real seconds per simulated one.
        """
        self._http, self._faults, self._workers, self._log = http, faults, workers, log
        self._forced = env.get("SGL_FORCE_SHUTDOWN", "").lower() in {"1", "true"}
        self._scale = time_scale
        self._interrupted = False
        self.begun = asyncio.Event()

    def listen(self) -> None:
        """Take the signals from now on."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._on_terminate)
        loop.add_signal_handler(signal.SIGINT, self._on_interrupt)

    async def answer_the_last(self) -> None:
        """Wait for the requests under way, or end at once when that is wished."""
        self._http.ready = False
        await self._faults.ending()
        if self._interrupted:
            self._log.launcher("INFO:     Shutting down")
            if self._http.open_requests:
                self._log.launcher("INFO:     Waiting for connections to close. (CTRL+C to force quit)")
            await self._http.answered()
            return
        while True:
            if self._forced:
                self._log.launcher("Signal SIGTERM received while force shutdown flag set. Force exiting.")
                return
            await asyncio.sleep(DRAIN_POLL_S * min(1.0, self._scale))
            left = self._http.open_requests
            self._log.launcher(
                f"Gracefully exiting... Remaining number of requests {len(left)}. "
                f"Remaining requests remaining_rids={left}."
            )
            if not left:
                self._log.launcher("INFO:     Shutting down")
                return

    def say_goodbye(self) -> None:
        """End the log; after an interrupt the process dies of it."""
        self._log.launcher(f"INFO:     Finished server process [{os.getpid()}]")
        if self._interrupted:
            self._log.launcher("KeyboardInterrupt")
            self._die_of(signal.SIGINT)

    def _on_terminate(self) -> None:
        if self._faults.ignores_sigterm:
            self._log.launcher("SIGTERM received and ignored (simulated fault)")
            return
        if self._faults.at in STARTING:  # SGLang has no handler yet
            self._die_of(signal.SIGTERM)
        self._log.launcher("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        self.begun.set()

    def _on_interrupt(self) -> None:
        """Let a first Ctrl-C wait for open connections; a second one, or one during the start, ends it at once."""
        if self.begun.is_set() or self._faults.at in STARTING:
            self._die_of(signal.SIGINT)
        self._interrupted = True
        self.begun.set()

    def _die_of(self, number: signal.Signals) -> None:
        """End as a process without a handler would."""
        self._workers.kill()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
