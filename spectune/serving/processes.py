"""Finding and ending the processes of one server when its guard can no longer do it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import psutil

SERVER_ID_VARIABLE = "SPECTUNE_SERVER_ID"  # every process of an engine carries it in its environment


def marked_processes(server_id: str) -> list[psutil.Process]:
    """Living processes (zombies excluded) that carry the server's mark in their environment.

    A process that rewrites its title wipes the environment the kernel shows; `SPT_NOENV=1` keeps setproctitle from
    doing so.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(SERVER_ID_VARIABLE) == server_id:
                found.append(process)
        except (psutil.Error, OSError):
            continue  # gone meanwhile, another user's, or a zombie
    return [process for process in found if is_alive(process)]


def environments(server_id: str, title: str) -> list[Mapping[str, str]]:
    """Return the environments that a server's processes were started with.

    Args:
        server_id: The server's mark.
        title: What the names of the processes begin with; at most 15 characters, the kernel keeps no more.
    """
    found: list[Mapping[str, str]] = []
    for process in marked_processes(server_id):
        try:
            if process.name().startswith(title):
                found.append(process.environ())
        except (psutil.Error, OSError):
            continue
    return found


def is_alive(process: psutil.Process) -> bool:
    """Whether this very process (not a later one with its pid) still runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def end_survivors(server_id: str, known: Iterable[psutil.Process], timeout_s: float = 10.0) -> int:
    """Kill every process that carries the mark, every `known` one, and their descendants, until none is left.

    Args:
        server_id: The mark to look for.
        known: Processes seen earlier, which may have cleared their environment.
        timeout_s: Seconds after which a process that cannot be killed is given up.

    Returns:
        The number of processes that are still there (0 unless `timeout_s` passed).
    """
    deadline = time.monotonic() + timeout_s
    known = set(known)
    while True:
        left = {process for process in (*known, *marked_processes(server_id)) if is_alive(process)}
        if not left or time.monotonic() > deadline:
            return len(left)
        for process in left:
            known.update(_children(process))
        for process in left:
            try:
                process.kill()
            except psutil.Error:
                continue
        time.sleep(0.02)


def listens(pids: Iterable[int], port: int) -> bool:
    """Whether one of the processes listens on TCP `port`."""
    for pid in pids:
        try:
            connections = psutil.Process(pid).net_connections("tcp")
        except psutil.Error:
            continue
        if any(listened_port(connection) == port for connection in connections):
            return True
    return False


def listened_port(connection: Any) -> int | None:
    """Return the port that one of psutil's connections listens on; None for any other connection."""
    listening = connection.status == psutil.CONN_LISTEN and connection.laddr
    return int(connection.laddr.port) if listening else None


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []
