"""What leftovers mean for the next search, with the commands that end them. Pure functions; nothing is touched."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterator, Sequence

from spectune.counts import count
from spectune.machine import Finding
from spectune.serving.leftovers import EngineProcess, Leftovers, PortHolder
from spectune.serving.ports import FIRST_PORT, LAST_PORT, block_of, blocks
from spectune.serving.segments import Segment

MUCH_BYTES = 1 << 28  # of shared memory that nobody uses, from which on it is worth a warning
NAMED = 6  # ports that fit on a line somebody reads


def leftover_findings(
    left: Leftovers,
    *,
    on_gpus: Collection[int] = (),
    ephemeral: tuple[int, int] | None = None,
    wanted: int | None = None,
) -> list[Finding]:
    """Return what to end or clear away.

    Args:
        left: What was found.
        on_gpus: Processes that hold GPU memory.
        ephemeral: First and last port that outgoing connections take.
        wanted: Port a search space insists on.
    """
    return [
        *_processes(left.processes, on_gpus),
        *_ports(left.ports, wanted),
        *_ephemeral(ephemeral),
        *_segments(left.segments),
    ]


def _processes(processes: Sequence[EngineProcess], on_gpus: Collection[int]) -> Iterator[Finding]:
    for ours in (True, False):
        found = [process for process in processes if process.ours == ours]
        if not found:
            continue
        pids = " ".join(str(process.pid) for process in found)
        names = ", ".join(sorted({process.name for process in found}))
        whose = "spectune started them, and the spectune that did is gone" if ours else "their launcher is gone"
        holding = any(process.pid in on_gpus for process in found)
        yield Finding(
            "leftover-engine",
            "fatal" if holding else "warning",
            f"{count(len(found), 'process')} of an engine without an owner: {names} (pid {', '.join(pids.split())}); "
            f"{whose}",
            "they keep GPU memory, ports and processor time, and every figure measured beside them is wrong",
            f"kill {pids}; sleep 10; kill -9 {pids}",
        )


def _ports(holders: Sequence[PortHolder], wanted: int | None) -> Iterator[Finding]:
    by_block: dict[int, list[PortHolder]] = {}
    for holder in holders:
        by_block.setdefault(block_of(holder.port), []).append(holder)
    free = [block for block in blocks() if block not in by_block]
    if not free:
        seen = f"every block of ports between {FIRST_PORT} and {LAST_PORT} has one that is taken"
        why = "a launch needs a block of its own"
        yield Finding("no-ports", "fatal", seen, why, "ss -ltnp")
    elif holders:
        who = ", ".join(f"{holder.port} by {_who(holder)}" for holder in holders[:NAMED])
        more = f" and {len(holders) - NAMED} more" if len(holders) > NAMED else ""
        seen = f"ports of launches are taken: {who}{more}"
        yield Finding("ports-taken", "info", seen, f"launches take another of the {len(free)} free blocks")
    for holder in holders:
        if holder.port == wanted:
            seen = f"port {wanted}, which the space insists on, is taken by {_who(holder)}"
            way_out = f"ss -ltnp 'sport = :{wanted}'  # end what holds it, or leave port out of engine.args"
            yield Finding("port-taken", "fatal", seen, "no launch can listen there", way_out)


def _ephemeral(ephemeral: tuple[int, int] | None) -> Iterator[Finding]:
    if ephemeral is not None and ephemeral[0] <= LAST_PORT and ephemeral[1] >= FIRST_PORT:
        yield Finding(
            "ephemeral-ports",
            "warning",
            f"outgoing connections take ports {ephemeral[0]} to {ephemeral[1]}, those of launches ({FIRST_PORT} to "
            f"{LAST_PORT}) among them",
            "one of them can hold a port an engine needs for its ranks: the launch dies of EADDRINUSE",
            'sudo sysctl -w net.ipv4.ip_local_port_range="32768 60999"',
        )


def _segments(segments: Sequence[Segment]) -> Iterator[Finding]:
    if not segments:
        return
    size = sum(segment.size for segment in segments)
    yield Finding(
        "shared-memory",
        "warning" if size >= MUCH_BYTES else "info",
        f"{count(len(segments), 'segment')} of shared memory ({size / (1 << 20):.1f} MiB) of no process seen from here",
        "engines that were killed left them, and they take memory; in a container with --ipc=host, look from the host",
        f"{shlex.quote(sys.executable)} -m spectune.serving.sweep  # removes those that nobody uses by then",
    )


def _who(holder: PortHolder) -> str:
    return f"{holder.name} (pid {holder.pid})" if holder.pid is not None else "a process that cannot be seen from here"
