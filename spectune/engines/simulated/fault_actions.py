"""What the engine does when it reaches a point of its launch at which the profile has faults."""

from __future__ import annotations

import asyncio

from spectune.engines.simulated.failing import (
    SEGMENTATION_FAULT,
    TRACEBACK,
    Dying,
    EngineEnded,
    address_in_use,
    error_of,
)
from spectune.engines.simulated.faults import FiredInFile
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.log import EngineLog
from spectune.engines.simulated.profile_schema import Kind, Point
from spectune.engines.simulated.scheduler import Scheduler
from spectune.engines.simulated.workers import Workers

SLOW_START_FACTOR = 10.0  # of the time it takes to load the weights
WATCHDOG_S, WATCHDOG_GRACE_S = 300.0, 5.0


class FaultActions:
    """Meets the faults of one launch. What a fault does to single requests is the launch's to say, see there.

    Attributes:
        at: The point the launch has reached.
    """

    def __init__(
        self,
        launch: SimulatedLaunch,
        fired: FiredInFile,
        log: EngineLog,
        workers: Workers,
        scheduler: Scheduler,
        *,
        address: tuple[str, int],
        time_scale: float,
        watchdog_s: float,
    ) -> None:
        """Take what faults act upon."""
        self.at: Point = "startup"
        self._launch, self._fired, self._log, self._workers = launch, fired, log, workers
        self._scheduler, self._address, self._scale, self._watchdog_s = scheduler, address, time_scale, watchdog_s
        self._dying = Dying(log, workers, time_scale)

    async def starting(self, at: Point) -> None:
        """Meet the faults of a point of the start."""
        for kind in self._reached(at):
            if kind == "slow_start":
                await asyncio.sleep(self._slow_s * self._scale)
            elif kind == "hang":
                await asyncio.Event().wait()
            else:
                self._meet(kind)

    def serving(self, at: Point) -> None:
        """Meet the faults of a point that requests bring about."""
        for kind in self._reached(at):
            if kind == "hang":
                self._scheduler.stop()
                self._watchdog = asyncio.get_running_loop().create_task(self._time_out())
            elif kind == "slow_start":
                self._scheduler.delay(self._slow_s)
            else:
                self._meet(kind)

    async def ending(self) -> None:
        """Meet the faults of the shutdown."""
        await self.starting("shutdown")

    def lost(self, name: str, pid: int, code: int) -> int:
        """Die of a worker that has vanished; returns the exit code."""
        return self._dying.by_lost_worker(name, pid, code, self.at)

    @property
    def ignores_sigterm(self) -> bool:
        """Whether the launch has a fault that lets it ignore SIGTERM."""
        return any(fault.kind == "ignore_sigterm" for _, fault in self._launch.plan.due)

    @property
    def _slow_s(self) -> float:
        return SLOW_START_FACTOR * self._launch.profile.file.startup.load_s

    def _reached(self, at: Point) -> list[Kind]:
        self.at = at
        due = self._launch.plan.at(at)
        for index, _ in due:
            self._fired.note(index)
        return [fault.kind for _, fault in due]

    def _meet(self, kind: Kind) -> None:
        at = self.at
        match kind:
            case "unsupported" if at == "startup":
                raise EngineEnded(self._dying.by_refusal(f"{TRACEBACK}ValueError: {error_of(kind, at)}"))
            case "oom" | "nccl" | "unsupported":
                self._dying.by_scheduler(error_of(kind, at), at)
            case "port_in_use":
                raise EngineEnded(self._dying.by_refusal(address_in_use(*self._address)))
            case "crash":
                self._log.scheduler(SEGMENTATION_FAULT)
                raise EngineEnded(self.lost(*self._workers.crash()))
            case "daemonize":
                self._workers.detach_one()
            case "log_flood":
                self._log.flood()
            case _:
                pass

    async def _time_out(self) -> None:
        """Let the scheduler's watchdog find the hang."""
        await asyncio.sleep(self._watchdog_s * self._scale)
        self._log.scheduler(f"Scheduler watchdog timeout (self.watchdog_timeout={self._watchdog_s:g}, self.soft=False)")
        await asyncio.sleep(WATCHDOG_GRACE_S * self._scale)
        self._dying.by_sigquit(self.at)
