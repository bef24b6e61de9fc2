"""Engine processes: ports, launch, readiness, teardown, and what a failure means."""

from spectune.serving.failures import (
    EngineDied,
    EngineFailed,
    Failure,
    FailureClass,
    Signature,
    StartupTimeout,
    classify,
    classify_requests,
    log_tail,
)
from spectune.serving.guarded import Teardown
from spectune.serving.ports import PortBlock, PortHeldError, reserve_ports
from spectune.serving.processes import environments
from spectune.serving.readiness import DEFAULT_PROBE
from spectune.serving.server import Readiness, Server

__all__ = [
    "DEFAULT_PROBE",
    "EngineDied",
    "EngineFailed",
    "Failure",
    "FailureClass",
    "PortBlock",
    "PortHeldError",
    "Readiness",
    "Server",
    "Signature",
    "StartupTimeout",
    "Teardown",
    "classify",
    "classify_requests",
    "environments",
    "log_tail",
    "reserve_ports",
]
