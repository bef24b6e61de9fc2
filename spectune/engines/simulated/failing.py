"""How the simulated engine dies: SGLang's words, process by process (facts, section 4.5)."""

from __future__ import annotations

import os
import signal
import time
from typing import NoReturn

from spectune.engines.address import LOOPBACK
from spectune.engines.simulated.faults import Doom, Failure, FaultPlan
from spectune.engines.simulated.log import EngineLog
from spectune.engines.simulated.profile_schema import Kind, Point
from spectune.engines.simulated.workers import Workers

_ADVICE = (
    "Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n2. set "
    "--cuda-graph-max-bs-decode to a smaller value (e.g., 16)\n3. disable CUDA graph by --disable-decode-cuda-graph"
)
_OUT_OF_MEMORY = "CUDA out of memory. Tried to allocate 2.00 GiB (simulated)."
_NCCL = (
    "torch.distributed.DistBackendError: NCCL error in: simulated/ProcessGroupNCCL.cpp:1, unhandled cuda error (run "
    "with NCCL_DEBUG=INFO for details), ncclUnhandledCudaError: Call to CUDA function failed."
)
TRACEBACK = (
    'Traceback (most recent call last):\n  File "scheduler.py", line 6362, in run_scheduler_process\n'
    "    scheduler = Scheduler(server_args, port_args)\n"
)
LAUNCHER_TRACEBACK = (
    'Traceback (most recent call last):\n  File "launch_server.py", line 82, in <module>\n    run_server(server_args)\n'
)
SEGMENTATION_FAULT = "Fatal Python error: Segmentation fault (simulated)"
NO_SUCH_GPU = "RuntimeError: CUDA error: invalid device ordinal"
DIAGNOSTICS_S = 5.0  # before a serving engine that lost a child ends; never longer in real time
STARTING = frozenset({"startup", "load", "capture", "ready"})


def error_of(kind: Kind, at: Point) -> str:
    """Return the exception a scheduler dies of."""
    if kind == "nccl":
        return _NCCL
    if kind == "unsupported":
        return "NotImplementedError: this combination of arguments is not supported (simulated)"
    assert kind == "oom", "the other kinds do not end in an exception of a scheduler"
    if at == "capture":
        return f"Exception: Capture cuda graph failed: {_OUT_OF_MEMORY}\n{_ADVICE}"
    return f"torch.OutOfMemoryError: {_OUT_OF_MEMORY}"


def not_enough_memory(fraction: float) -> str:
    """Return the exception when the weights leave nothing for the KV cache."""
    return (
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
        f"Current value: mem_fraction_static={fraction:g}"
    )


def last_words(failure: Failure, plan: FaultPlan, doom: Doom | None, fraction: float) -> str:
    """Return what stands at the end of the log of a launch that dies of a failure.

    Args:
        failure: Where and how it dies.
        plan: Its faults.
        doom: What SGLang's rules let it die of, None for most.
        fraction: Share of the memory for weights and KV cache.
    """
    at, kind = failure.at, failure.kind
    if failure == plan.failure and doom is not None and failure == doom.failure:
        return (TRACEBACK if at == "load" else LAUNCHER_TRACEBACK) + doom.error
    if failure == plan.failure and at == "startup":
        return TRACEBACK + (not_enough_memory(fraction) if kind == "oom" else NO_SUCH_GPU)
    if kind == "port_in_use":
        return address_in_use(LOOPBACK, 0)
    if kind == "crash":
        return SEGMENTATION_FAULT
    return TRACEBACK + ("ValueError: " if (at, kind) == ("startup", "unsupported") else "") + error_of(kind, at)


def address_in_use(host: str, port: int) -> str:
    """Return what the HTTP server says when it cannot bind."""
    return f"ERROR:    [Errno 98] error while attempting to bind on address ('{host}', {port}): address already in use"


class EngineEnded(Exception):
    """The engine ends with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Dying:
    """Ends this engine."""

    def __init__(self, log: EngineLog, workers: Workers, time_scale: float) -> None:
        self._log, self._workers, self._scale = log, workers, time_scale

    def by_scheduler(self, error: str, at: Point) -> NoReturn:
        """Die of a scheduler's exception: it signals the launcher, which kills the tree and itself."""
        self._log.scheduler(f"Scheduler hit an exception: {TRACEBACK}{error}\n")
        self.by_sigquit(at)

    def by_sigquit(self, at: Point) -> NoReturn:
        """Do what the launcher does when a child has told it of its end."""
        if at in STARTING:
            self._log.launcher("Received sigquit from a child process. It usually means the child failed.")
        else:
            self._log.launcher("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
            self._log.launcher("Sleeping 5 seconds before crash diagnostics to let GPU activity settle.")
            time.sleep(DIAGNOSTICS_S * min(1.0, self._scale))  # the whole process is silent meanwhile, as SGLang's is
        pid = os.getpid()
        self._log.launcher(f"kill_process_tree called: parent_pid={pid}, include_parent=True, pid={pid}")
        self._workers.kill()
        os.kill(pid, signal.SIGKILL)
        raise AssertionError("SIGKILL returned")

    def by_lost_worker(self, name: str, pid: int, code: int, at: Point) -> int:
        """Die of a worker that has vanished; returns the exit code, where there is one to return."""
        if at not in STARTING:
            self._log.launcher(
                f"Subprocess {name} (pid={pid}) crashed with exit code {code}. Triggering SIGQUIT for cleanup..."
            )
            self.by_sigquit(at)
        rank = name.rpartition("_")[2]
        self._log.launcher(
            f"RuntimeError: Rank {rank} scheduler died during initialization (exit code: {code}). If exit code is -9 "
            "(SIGKILL), a common cause is the OS OOM killer."
        )
        self._workers.kill()
        return 1

    def by_refusal(self, message: str) -> int:
        """Die before any scheduler served, with exit code 1; the workers end when nobody watches them any more."""
        self._log.launcher(message)
        return 1
