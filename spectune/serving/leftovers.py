"""What engines that ended badly have left on this machine. It is looked at, never touched."""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from spectune.serving.ports import needed_ports
from spectune.serving.processes import SERVER_ID_VARIABLE, listened_port
from spectune.serving.segments import Segment, unused_segments

TITLE = "sglang::"  # SGLang's workers rename themselves: sglang::scheduler_TP0, sglang::detokenizer, …
GUARD = ("-I", "-S", "guard.py")


@dataclass(frozen=True)
class EngineProcess:
    """A process of an engine that nobody is in charge of, or the guard that is kept from ending it.

    Attributes:
        pid: Its process id.
        name: Its title or program name.
        ours: Whether spectune started it: it carries spectune's mark, or is an abandoned guard.
    """

    pid: int
    name: str
    ours: bool


@dataclass(frozen=True)
class PortHolder:
    """Who listens on a port that launches would use; pid and name are None when they cannot be seen."""

    port: int
    pid: int | None
    name: str | None


@dataclass(frozen=True)
class Leftovers:
    """All that was found."""

    processes: tuple[EngineProcess, ...]
    segments: tuple[Segment, ...]
    ports: tuple[PortHolder, ...]


def find_leftovers() -> Leftovers:
    """Look at every process this user may look at, the shared memory and the ports."""
    return Leftovers(tuple(find_processes()), tuple(unused_segments()), tuple(held_ports()))


def find_processes() -> list[EngineProcess]:
    """Return the processes of engines that nobody is in charge of."""
    return ownerless({process.pid: process for process in _processes()})


@dataclass(frozen=True)
class SeenProcess:
    """What is known of any process of the machine.

    Attributes:
        pid: Its process id.
        parent: That of the process it belongs to.
        name: Its title or program name.
        command: Its arguments, the program first.
        marked: Whether it carries spectune's mark.
        deserted: Whether it is stopped, and nobody has the other end of its standard input.
    """

    pid: int
    parent: int
    name: str
    command: tuple[str, ...]
    marked: bool
    deserted: bool = False

    @property
    def guard(self) -> bool:
        """Whether it is the guard of a launch of spectune."""
        return len(self.command) > 3 and (*self.command[1:3], Path(self.command[3]).name) == GUARD

    @property
    def abandoned_guard(self) -> bool:
        """Whether it is a guard whose spectune is gone, and that somebody stopped before it could see that."""
        return self.guard and self.deserted

    @property
    def worker(self) -> bool:
        """Whether it is a worker of SGLang, which has a launcher above it as long as all is well."""
        return self.name.startswith(TITLE)

    @property
    def launcher(self) -> bool:
        """Whether it is a command that starts SGLang."""
        return "sglang.launch_server" in self.command or (
            "serve" in self.command and any(Path(word).name == "sglang" for word in self.command[:2])
        )


def ownerless(seen: Mapping[int, SeenProcess]) -> list[EngineProcess]:
    """Return the processes of engines whose owner is gone: the guard of a marked one, the launcher of an unmarked one.

    An abandoned guard is in charge of nothing, and is returned with what it guards.

    Args:
        seen: All processes, by pid.
    """
    found = []
    for process in seen.values():
        above = _above(process, seen)
        if any(one.guard and not one.abandoned_guard for one in above):
            continue
        ours = process.marked or process.abandoned_guard
        if ours or (process.worker and not any(one.launcher for one in above)):
            found.append(EngineProcess(process.pid, process.name, ours))
    return sorted(found, key=lambda one: one.pid)


def held_ports() -> list[PortHolder]:
    """Return who listens on the ports that launches take."""
    needed = needed_ports()
    try:
        connections = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return []
    held = {port: one.pid for one in connections if (port := listened_port(one)) is not None and port in needed}
    return [PortHolder(port, pid, _name(pid)) for port, pid in sorted(held.items())]


def _processes() -> list[SeenProcess]:
    found = []
    for process in psutil.process_iter(["pid", "ppid", "name", "cmdline", "status"]):
        info = process.info
        if info["status"] == psutil.STATUS_ZOMBIE:
            continue
        command = tuple(info["cmdline"] or ())
        title = command[0].split()[0] if command and command[0].startswith(TITLE) else info["name"] or "?"
        deserted = info["status"] == psutil.STATUS_STOPPED and _unheard(process.pid)
        found.append(SeenProcess(info["pid"], info["ppid"] or 0, title, command, _marked(process), deserted))
    return found


def _marked(process: psutil.Process) -> bool:
    try:
        return SERVER_ID_VARIABLE in process.environ()
    except (psutil.Error, OSError):  # gone, or another user's
        return False


def _unheard(pid: int) -> bool:
    """Whether the standard input of a process is a pipe that nobody can write to any more."""
    try:
        descriptor = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:  # gone, or another user's
        return False
    try:
        asked = select.poll()
        asked.register(descriptor, 0)
        return any(event & select.POLLHUP for _, event in asked.poll(0))
    finally:
        os.close(descriptor)


def _above(process: SeenProcess, seen: Mapping[int, SeenProcess]) -> list[SeenProcess]:
    chain: list[SeenProcess] = []
    while (process := seen.get(process.parent, process)) not in chain and process.pid != process.parent:
        chain.append(process)
        if process.parent not in seen:
            break
    return chain


def _name(pid: int | None) -> str | None:
    try:
        return None if pid is None else psutil.Process(pid).name()
    except psutil.Error:
        return None
