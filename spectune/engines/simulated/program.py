"""One run of the simulated engine: the start-up of SGLang, its service, and its end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from spectune.engines.simulated import memory
from spectune.engines.simulated.command import Command, CommandRefused
from spectune.engines.simulated.failing import Dying, address_in_use, error_of, not_enough_memory
from spectune.engines.simulated.faults import FiredInFile
from spectune.engines.simulated.http_server import EngineHttp
from spectune.engines.simulated.information import CONTEXT, Information
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.log import EngineLog
from spectune.engines.simulated.prefix_cache import PrefixCache
from spectune.engines.simulated.profile import Profile
from spectune.engines.simulated.profile_schema import Point
from spectune.engines.simulated.requests import Limits
from spectune.engines.simulated.scheduler import Scheduler
from spectune.engines.simulated.start import open_launch
from spectune.engines.simulated.workers import Workers, worker_environment

WATCH_S = 0.05
DRAIN_POLL_S = 0.2
SLOW_START_FACTOR = 10.0
WARMUP_TOKENS = 8
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 30000


class EngineEnded(Exception):
    """The engine ends with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


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
        SpectuneError: There is no launch in `words`, or a variable of the study is wrong.
    """
    try:
        command, launch, fired = open_launch(profile, words, env)
    except CommandRefused as refused:
        return _refuse(refused)
    return asyncio.run(_Engine(command, launch, fired, words, time_scale, port).run())


def _refuse(refused: CommandRefused) -> int:
    if refused.exit_code == 2:
        sys.stderr.write(f"usage: sglang serve [-h] --model-path MODEL_PATH ...\nsglang serve: error: {refused}\n")
    elif refused.exit_code == 1:
        sys.stderr.write(
            'Traceback (most recent call last):\n  File "launch_server.py", line 82, in <module>\n'
            f"    run_server(server_args)\n{refused}\n"
        )
    else:
        sys.stdout.write("usage: sglang serve [-h] --model-path MODEL_PATH ...\n(simulated engine of spectune)\n")
    return refused.exit_code


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
        self._command, self._launch, self._fired, self._scale = command, launch, fired, time_scale
        arguments = command.arguments
        self._host = str(arguments.get("host", DEFAULT_HOST))
        self._port = port or int(arguments.get("port", DEFAULT_PORT))
        ranks = int(command.resolved.get("tp_size") or 1) * int(command.resolved.get("pp_size") or 1)
        self._log = EngineLog(ranks)
        self._greet(words)
        self._workers = Workers(ranks, worker_environment(command.resolved, command.env))
        self._dying = Dying(self._log, self._workers)
        limits = Limits(int(arguments.get("context-length") or CONTEXT), launch.kv_tokens)
        self._information = Information(command, launch, words, limits)
        cache = PrefixCache(enabled=not arguments.get("disable-radix-cache"))
        self._scheduler = Scheduler(
            launch, self._log, cache, time_scale=time_scale, log_interval=int(arguments.get("decode-log-interval", 40))
        )
        self._scheduler.on_point(self._serving_point)
        self._http = EngineHttp(self._scheduler, self._information, cache, self._log)
        self._http.address = (self._host, self._port)
        self._at: Point = "startup"
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Start, serve, and end; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._terminated)
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
        profile = self._launch.profile
        scale = "real time" if self._scale == 1 else f"time scale {self._scale:g}"
        self._log.launcher(
            f"SIMULATED ENGINE of spectune: profile {profile.name}, launch {self._launch.number}, {scale}. "
            "Nothing here is measured on the hardware it names."
        )
        for note in (*self._command.notes, *self._launch.warnings()):
            self._log.launcher(note)
        fields: dict[str, Any] = dict(self._command.resolved)
        self._log.launcher(f"server_args={fields}")
        self._log.launcher(f"launch_command={' '.join(words)}")

    async def _live(self) -> None:
        await self._start()
        runner = web.AppRunner(self._http.app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await self._listen(runner)
            await self._become_ready()
            await self._stopping.wait()
            await self._drain()
        finally:
            await runner.cleanup()
        self._log.launcher(f"INFO:     Finished server process [{os.getpid()}]")

    async def _start(self) -> None:
        """Load, lay out the memory, capture."""
        setup, file = self._launch.setup, self._launch.profile.file
        await self._point("startup")
        if not memory.weights_fit(file, setup):
            self._dying.by_scheduler(not_enough_memory(setup.mem_fraction), "startup")
        self._at = "load"
        free = file.gpu.memory_gb
        self._log.scheduler(f"Load weight begin. avail mem={free:.2f} GB")
        await self._work("load_weight", file.startup.load_s)
        await self._point("load")
        weights = memory.weights_gb(file, setup)
        self._log.scheduler(
            f"Load weight end. elapsed={file.startup.load_s:.2f} s, type=Simulated, avail mem={free - weights:.2f} GB, "
            f"mem usage={weights:.2f} GB."
        )
        if self._command.doom is not None:
            self._dying.by_scheduler(self._command.doom, "load")
        free -= memory.static_gb(file, setup)
        self._log.scheduler(f"Memory pool end. avail mem={free + weights:.2f} GB")
        self._at = "capture"
        await self._capture(free)
        arguments = self._command.resolved
        self._log.scheduler(
            f"max_total_num_tokens={self._launch.kv_tokens}, chunked_prefill_size={arguments.get('chunked_prefill_size')}"
            f", max_prefill_tokens=16384, max_running_requests={self._launch.most_running}, "
            f"context_len={self._information.limits.context}, available_gpu_mem={free:.2f} GB"
        )

    async def _capture(self, free_gb: float) -> None:
        setup, file = self._launch.setup, self._launch.profile.file
        await self._point("capture")
        if not setup.captured:
            return
        what = "target verify" if setup.speculative else "target decode"
        self._log.scheduler(
            f"Capture {what} CUDA graph begin. backend=full, num_tokens_per_req={setup.num_draft_tokens}, "
            f"avail mem={free_gb:.2f} GB"
        )
        seconds = file.startup.capture_s_per_graph * len(setup.captured)
        await self._work("cuda_graph", seconds)
        if not memory.graphs_fit(file, setup):
            self._dying.by_scheduler(error_of("oom", "capture"), "capture")
        used = memory.graphs_gb(file, setup)
        self._log.scheduler(
            f"Capture {what} CUDA graph end. bs={list(setup.captured)}, elapsed={seconds:.2f} s, "
            f"mem usage={used:.2f} GB, avail mem={free_gb - used:.2f} GB."
        )

    async def _listen(self, runner: web.AppRunner) -> None:
        self._log.launcher(f"INFO:     Started server process [{os.getpid()}]")
        try:
            await web.TCPSite(runner, self._host, self._port, reuse_address=True).start()
        except OSError:
            raise EngineEnded(self._dying.by_refusal(address_in_use(self._host, self._port))) from None
        self._log.launcher(
            f"INFO:     Uvicorn running on http://{self._host}:{self._port} (Press CTRL+C to quit) [simulated]"
        )

    async def _become_ready(self) -> None:
        self._at = "ready"
        await self._point("ready")
        if not self._command.arguments.get("skip-server-warmup"):
            await self._http.generate_once([1, 2, 3, 4], WARMUP_TOKENS)
        self._scheduler.busy_s = 0.0
        times = ", ".join(f"{name}={seconds:.2f}" for name, seconds in self._information.startup_s.items())
        self._log.launcher(f"Engine startup timings (s): {times}")
        self._http.ready = True
        self._log.launcher("The server is fired up and ready to roll!")

    async def _work(self, name: str, seconds: float) -> None:
        """Take the simulated time of a phase of the start."""
        self._information.startup_s[name] = seconds
        await asyncio.sleep(seconds * self._scale)

    async def _point(self, at: Point) -> None:
        """Meet the faults of a point of the start."""
        for index, fault in self._launch.plan.at(at):
            self._fired.note(index)
            if fault.kind == "slow_start":
                await asyncio.sleep(SLOW_START_FACTOR * self._launch.profile.file.startup.load_s * self._scale)
            elif fault.kind == "hang":
                await asyncio.Event().wait()
            else:
                self._meet(fault.kind, at)

    def _serving_point(self, at: Point) -> None:
        """Meet the faults of a point that requests bring about."""
        self._at = at
        for index, fault in self._launch.plan.at(at):
            self._fired.note(index)
            if fault.kind == "hang":
                self._scheduler.stop()
                self._watchdog = asyncio.get_running_loop().create_task(self._time_out())
            elif fault.kind == "slow_start":
                self._scheduler.delay(SLOW_START_FACTOR * self._launch.profile.file.startup.load_s)
            else:
                self._meet(fault.kind, at)

    def _meet(self, kind: Any, at: Point) -> None:
        """Do at once what a fault does at once; what it does to single requests is the launch's to say."""
        match kind:
            case "oom" | "nccl":
                self._dying.by_scheduler(error_of(kind, at), at)
            case "unsupported" if at == "startup":
                raise EngineEnded(self._dying.by_refusal(f"ValueError: {error_of(kind, at).partition(': ')[2]}"))
            case "unsupported":
                self._dying.by_scheduler(error_of(kind, at), at)
            case "port_in_use":
                raise EngineEnded(self._dying.by_refusal(address_in_use(self._host, self._port)))
            case "crash":
                self._log.scheduler("Fatal Python error: Segmentation fault (simulated)")
                self._workers.crash()
            case "daemonize":
                self._workers.detach_one()
            case "log_flood":
                self._log.flood()
            case _:
                pass

    async def _time_out(self) -> None:
        """Let the scheduler's watchdog find the hang."""
        limit = float(self._command.arguments.get("watchdog-timeout", 300))
        await asyncio.sleep(limit * self._scale)
        self._log.scheduler(f"Scheduler watchdog timeout (self.watchdog_timeout={limit:g}, self.soft=False)")
        await asyncio.sleep(5 * self._scale)
        self._dying.by_sigquit(self._at)

    async def _watch_workers(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            lost = self._workers.dead()
            if lost is not None and not self._stopping.is_set():
                raise EngineEnded(self._dying.by_lost_worker(*lost, self._at))

    def _terminated(self) -> None:
        if any(fault.kind == "ignore_sigterm" for _, fault in self._launch.plan.due):
            self._log.launcher("SIGTERM received and ignored (simulated fault)")
            return
        self._log.launcher("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        if not self._http.ready:
            self._workers.kill()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        self._stopping.set()

    async def _drain(self) -> None:
        """End as SGLang does: after the last running request, or at once when that is wished."""
        self._http.ready = False
        self._at = "shutdown"
        for index, fault in self._launch.plan.at("shutdown"):
            self._fired.note(index)
            if fault.kind in {"hang", "slow_start"}:
                await asyncio.sleep(3600 if fault.kind == "hang" else SLOW_START_FACTOR)
            self._meet(fault.kind, "shutdown")
        while True:
            if self._command.env.get("SGL_FORCE_SHUTDOWN", "").lower() in {"1", "true"}:
                self._log.launcher("Signal SIGTERM received while force shutdown flag set. Force exiting.")
                return
            left = self._http.open_requests
            self._log.launcher(
                f"Gracefully exiting... Remaining number of requests {len(left)}. Remaining requests remaining_rids={left}."
            )
            if not left:
                return
            began = time.monotonic()
            while self._http.open_requests and time.monotonic() - began < 5:
                await asyncio.sleep(DRAIN_POLL_S)
