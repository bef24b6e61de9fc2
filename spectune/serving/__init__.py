"""Engine processes: ports, GPUs, launch, readiness, teardown, and what a failure means."""

from spectune.serving.failures import (
    EngineDied,
    EngineFailed,
    Failure,
    FailureClass,
    StartupTimeout,
    classify,
    classify_requests,
    log_tail,
)
from spectune.serving.gpu_memory import GpuMemory
from spectune.serving.gpu_reservation import GpuGroup, reserve_gpus
from spectune.serving.guarded import Teardown
from spectune.serving.launch_slots import reserve_slot
from spectune.serving.leftover_findings import leftover_findings
from spectune.serving.leftovers import EngineProcess, Leftovers, PortHolder, find_leftovers
from spectune.serving.machine_lock import MachineLock, held_locks
from spectune.serving.ports import PortHeldError, reserve_ports
from spectune.serving.processes import environments
from spectune.serving.reaping import end_leftovers
from spectune.serving.reservation_findings import reservation_findings, reserved_gpus
from spectune.serving.segments import Segment
from spectune.serving.server import Server

__all__ = [
    "EngineDied",
    "EngineFailed",
    "EngineProcess",
    "Failure",
    "FailureClass",
    "GpuGroup",
    "GpuMemory",
    "Leftovers",
    "MachineLock",
    "PortHeldError",
    "PortHolder",
    "Segment",
    "Server",
    "StartupTimeout",
    "Teardown",
    "classify",
    "classify_requests",
    "end_leftovers",
    "environments",
    "find_leftovers",
    "held_locks",
    "leftover_findings",
    "log_tail",
    "reservation_findings",
    "reserve_gpus",
    "reserve_ports",
    "reserve_slot",
    "reserved_gpus",
]
