"""One run of the simulated engine: start, service, end, and the exit code SGLang's launcher would have."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Mapping, Sequence

from aiohttp import web

from spectune.engines.address import DEFAULT_PORT, LOOPBACK
from spectune.engines.simulated.command import Command, CommandRefused
from spectune.engines.simulated.ending import Ending
from spectune.engines.simulated.failing import LAUNCHER_TRACEBACK, Dying, EngineEnded, address_in_use
from spectune.engines.simulated.fault_actions import WATCHDOG_S, FaultActions
from spectune.engines.simulated.faults import FiredInFile
from spectune.engines.simulated.http_server import EngineHttp
from spectune.engines.simulated.information import CONTEXT, Information
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.log import EngineLog
from spectune.engines.simulated.prefix_cache import PrefixCache
from spectune.engines.simulated.profile import Profile
from spectune.engines.simulated.requests import Limits
from spectune.engines.simulated.scheduler import Scheduler
from spectune.engines.simulated.start import open_launch
from spectune.engines.simulated.starting import Starting
from spectune.engines.simulated.workers import Workers, worker_environment

WATCH_S = 0.05
WARMUP_TOKENS = 8
DECODE_LOG_INTERVAL = 40
_USAGE = "usage: sglang serve [-h] --model-path MODEL_PATH ...\n"


def run_engine(
    profile: Profile, words: Sequence[str], env: Mapping[str, str], *, time_scale: float = 1.0, port: int | None = None
) -> int:
    """Do what `python -m sglang.launch_server` would do on the profile's machine; returns the exit code.

    Args:
        profile: The machine.
        words: The launch command, or its arguments alone.
        env: Its environment.
        time_scale: Real seconds per simulated one.
        port: Instead of the one in the command.

    Raises:
        CommandRefused: SGLang would end it before any worker is started.
        SpectuneError: There is no launch in `words`, or a variable of the study is wrong.
    """
    command, launch, fired = open_launch(profile, words, env)
    return asyncio.run(_Engine(command, launch, fired, words, time_scale, port).run())


def refuse(refused: CommandRefused) -> int:
    """Say what SGLang's parser or resolver would say; returns the exit code it would have."""
    if refused.exit_code == 2:
        sys.stderr.write(f"{_USAGE}sglang serve: error: {refused}\n")
    elif refused.exit_code == 1:
        sys.stderr.write(f"{LAUNCHER_TRACEBACK}{refused}\n")
    else:
        sys.stdout.write(f"{_USAGE}(the simulated engine of spectune)\n")
    return refused.exit_code


def _timings(times: Mapping[str, float | Mapping[str, float]]) -> str:
    """Write durations as SGLang does, those of one phase in braces."""
    return ", ".join(
        f"{name}={{{_timings(part)}}}" if isinstance(part, Mapping) else f"{name}={part:.2f}"
        for name, part in times.items()
    )


class _Engine:
    """The state of a run."""

    def __init__(
        self,
        command: Command,
        launch: SimulatedLaunch,
        fired: FiredInFile,
        words: Sequence[str],
        time_scale: float,
        port: int | None,
    ) -> None:
        arguments = command.arguments
        self._command, self._launch, self._scale = command, launch, time_scale
        self._address = (
            str(arguments.get("host", LOOPBACK)),
            port or int(arguments.get("port", DEFAULT_PORT)),
        )
        ranks = command.setup.ranks
        self._log = EngineLog(ranks)
        self._greet(words)
        self._workers = Workers(ranks, worker_environment(command.resolved, command.env))
        cache = PrefixCache(enabled=not arguments.get("disable-radix-cache"))
        limits = Limits.of(command.setup, int(arguments.get("context-length") or CONTEXT), launch.kv_tokens)
        self._information = Information(command, launch, words, limits)
        interval = int(arguments.get("decode-log-interval", DECODE_LOG_INTERVAL))
        self._scheduler = Scheduler(launch, self._log, cache, time_scale=time_scale, log_interval=interval)
        self._faults = FaultActions(
            launch, fired, self._log, self._workers, self._scheduler, address=self._address, time_scale=time_scale,
            watchdog_s=float(arguments.get("watchdog-timeout", WATCHDOG_S)),
        )  # fmt: skip
        self._scheduler.on_point(self._faults.serving)
        self._http = EngineHttp(self._scheduler, self._information, cache, self._log, arguments.get("api-key"))
        self._http.address = self._address
        self._ending = Ending(
            self._http, self._faults, self._workers, self._log, env=command.env, time_scale=time_scale
        )

    async def run(self) -> int:
        """Start, serve, and end; returns the exit code."""
        loop = asyncio.get_running_loop()
        self._ending.listen()
        tasks = [loop.create_task(one) for one in (self._live(), self._watch_workers(), self._scheduler.run())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except EngineEnded as ended:
            return ended.code
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._workers.kill()
        return 0

    def _greet(self, words: Sequence[str]) -> None:
        pace = "real time" if self._scale == 1 else f"time scale {self._scale:g}"
        self._log.launcher(
            f"SIMULATED ENGINE of spectune: profile {self._launch.profile.name}, launch {self._launch.number}, {pace}. "
            "Nothing here is measured on the hardware it names."
        )
        for note in (*self._command.notes, *self._launch.warnings(), *self._launch.unlike_profile()):
            self._log.launcher(note)
        self._log.launcher(f"server_args={dict(self._command.resolved)}")
        self._log.launcher(f"launch_command={shlex.join(words)}")

    async def _live(self) -> None:
        """Go through the whole life of the engine."""
        dying = Dying(self._log, self._workers, self._scale)
        await Starting(self._information, self._faults, dying, self._log, self._scale).run()
        runner = web.AppRunner(
            self._http.app, access_log=None, logger=self._http.logger, handler_cancellation=True, shutdown_timeout=1.0
        )
        await runner.setup()
        try:
            await self._listen(runner, dying)
            await self._become_ready()
            await self._ending.begun.wait()
            await self._ending.answer_the_last()
        finally:
            await runner.cleanup()
        self._ending.say_goodbye()

    async def _listen(self, runner: web.AppRunner, dying: Dying) -> None:
        self._log.launcher(f"INFO:     Started server process [{os.getpid()}]")
        host, port = self._address
        try:
            await web.TCPSite(runner, host, port, reuse_address=True).start()
        except OSError:
            raise EngineEnded(dying.by_refusal(address_in_use(host, port))) from None
        except OverflowError as error:  # there is no such port; SGLang finds out as late
            raise EngineEnded(dying.by_refusal(f"{LAUNCHER_TRACEBACK}OverflowError: {error}")) from None
        self._log.launcher(f"INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")

    async def _become_ready(self) -> None:
        """Warm up with a generation of the engine's own, as SGLang does, and say so."""
        await self._faults.starting("ready")
        if not self._command.arguments.get("skip-server-warmup"):
            await self._http.generate_once([1, 2, 3, 4], WARMUP_TOKENS)
        self._scheduler.busy_s = 0.0  # the noise of a launch begins with its clients
        self._log.launcher(f"Engine startup timings (s): {_timings(self._information.startup_times())}")
        self._faults.at = "warmup"
        self._http.ready = True
        self._log.launcher("The server is fired up and ready to roll!")

    async def _watch_workers(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            lost = self._workers.dead()
            if lost is not None and not self._ending.begun.is_set():
                raise EngineEnded(self._faults.lost(*lost))
