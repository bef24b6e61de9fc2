"""Ports for one launch: a block that no other spectune process, and nobody else on this machine, is using."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from spectune.errors import SpectuneError
from spectune.serving.held import Held
from spectune.serving.machine_lock import MachineLock, last_taken_s, lock_folder, try_lock
from spectune.serving.machine_lock import holder_of as holder_of_lock
from spectune.serving.processes import listened_port

FIRST_PORT, LAST_PORT = 20_000, 32_300  # below Linux's default ephemeral range (32768-60999)
SPACING = 300  # SGLang derives further ports up to 239 above its HTTP port
NCCL_OFFSET = 100
DERIVED_OFFSETS = range(233, 240)  # ZMQ over TCP, used under attention data parallelism


class PortHeldError(SpectuneError):
    """A port the launch needs belongs to another program; the message names the port, the holder and the way out."""


@dataclass(frozen=True)
class PortBlock(Held):
    """The ports of one launch, reserved until `release`, or the end of this object or process.

    Attributes:
        http: Port the engine answers HTTP on.
    """

    http: int
    _lock: MachineLock = field(repr=False)

    @property
    def nccl(self) -> int:
        """Port for the rendezvous of the engine's ranks."""
        return self.http + NCCL_OFFSET

    def release(self) -> None:
        """Give the block back; doing it twice is harmless."""
        self._lock.release()


def reserve_ports(wanted: int | None = None, *, study: str = "", folder: Path | None = None) -> PortBlock:
    """Reserve a block of ports for one launch.

    Without `wanted` it is the free block whose last use is longest ago, so that a socket which lingers from the
    previous launch never matters.

    Args:
        wanted: The HTTP port the user insists on.
        study: What for, told to whoever else wants the block.
        folder: Of the locks, one for each block.

    Raises:
        PortHeldError: The wanted port, or every block, is taken.
        SpectuneError: There can be no locks in that folder.
    """
    if wanted is not None:
        return _reserve_wanted(wanted, study, folder)
    for http in sorted(blocks(), key=lambda port: last_taken_s(_lock_name(port), folder)):
        lock = _try_lock(http, study, folder)
        if lock is None:
            continue
        if _first_held(http) is None:
            return PortBlock(http, lock)
        lock.release()
    raise PortHeldError(
        f"no block of ports is free between {FIRST_PORT} and {LAST_PORT}: all are in use or reserved by other "
        f"spectune runs (lock files in {folder or lock_folder()}). End what holds them, or name a free port for the "
        "engine."
    )


def blocks() -> range:
    """Return the HTTP port of every block that a launch may get."""
    return range(FIRST_PORT, LAST_PORT, SPACING)


def block_of(port: int) -> int:
    """Return the HTTP port of the block a port belongs to."""
    return port - (port - FIRST_PORT) % SPACING


def needed_ports() -> frozenset[int]:
    """Return every port that some launch needs."""
    return frozenset(port for block in blocks() for port in _ports_of(block))


def holder_of(port: int) -> str:
    """Who listens on TCP `port`, in words: process name and pid where they can be seen."""
    pids = {connection.pid for connection in psutil.net_connections("tcp") if listened_port(connection) == port}
    for pid in pids - {None}:
        with contextlib.suppress(psutil.Error):
            return f"{psutil.Process(pid).name()} (pid {pid})"
    return "a process of another user" if pids else "a connection of an unknown process"


def _reserve_wanted(wanted: int, study: str, folder: Path | None) -> PortBlock:
    if not 1024 <= wanted <= 65_535 - DERIVED_OFFSETS.stop:
        raise PortHeldError(f"port must be between 1024 and {65_535 - DERIVED_OFFSETS.stop}, but got {wanted}")
    lock = _try_lock(wanted, study, folder)
    held = _first_held(wanted)
    if lock is not None and held is None:
        return PortBlock(wanted, lock)
    if lock is not None:
        lock.release()
    if held is not None:
        needed_for = "" if held == wanted else f" (needed beside port {wanted})"
        raise PortHeldError(
            f"port {held}{needed_for} is held by {holder_of(held)}. End that process, name another port, or name none "
            "and spectune picks a free one."
        )
    raise PortHeldError(
        f"port {wanted} is reserved by {holder_of_lock(_lock_name(wanted), folder)}. Wait for it to end, name another "
        "port, or name none and spectune picks a free one."
    )


def _try_lock(http: int, study: str, folder: Path | None) -> MachineLock | None:
    return try_lock(_lock_name(http), study, folder, file_stays=True)


def _lock_name(http: int) -> str:
    return f"port-{http}"


def _first_held(http: int) -> int | None:
    return next((port for port in _ports_of(http) if not _can_bind(port)), None)


def _ports_of(http: int) -> tuple[int, ...]:
    return (http, http + NCCL_OFFSET, *(http + offset for offset in DERIVED_OFFSETS))


def _can_bind(port: int) -> bool:
    """Whether a server could listen on `port`; like servers do, with SO_REUSEADDR, so TIME_WAIT does not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
