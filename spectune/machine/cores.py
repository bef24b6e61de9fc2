"""Whose work a machine's cores did between two moments: this program's with all it started, or that of others."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import psutil

from spectune.machine.reading import text_of

NOTICEABLE = 0.1
"""Share of the cores; less is what every machine does beside, and what counting in ticks cannot tell."""
WAITING = 0.1
"""Share of the time in which programs waited for a core; below it there was room for all of them."""
ROOM = 0.25
"""Share of the cores that was idle, where the kernel does not count the waiting."""
BUSY_BEFORE = 0.25
"""Share of the cores that is missed before anything is launched."""
LOOK_S = 1.0
"""How long to look before anything is launched: a shorter burst of others does not matter."""
_IDLE = (3, 4)  # of a line of /proc/stat: idle, and idle while a disk is waited for
_COUNTED = 8  # user, nice, system, idle, iowait, irq, softirq, steal; guests, which follow, are in the first two
_SHORTEST_S = 0.1  # counted in ticks of 10 ms, less says nothing


@dataclass(frozen=True)
class CoresUsed:
    """What the cores did, in cores on average.

    Attributes:
        cores: Cores this program may run on.
        own: Used by it and all that it started.
        others: Used by other programs, by the kernel for them, and on a virtual machine by other guests of its host.
        waited: Share of the time in which some program waited for a core; None where the kernel does not say.
    """

    cores: int
    own: float
    others: float
    waited: float | None = None

    @property
    def short(self) -> bool:
        """Whether others took cores that were missed: they used some, and there was no room for all."""
        idle = self.cores - self.own - self.others
        no_room = idle < ROOM * self.cores if self.waited is None else self.waited >= WAITING
        return self.others >= NOTICEABLE * self.cores and no_room

    @property
    def busy_before(self) -> bool:
        """Whether others use so much that a launch would miss it, seen while none runs."""
        return self.others >= BUSY_BEFORE * self.cores

    def __str__(self) -> str:
        return f"{self.others:.1f} of {self.cores} cores"


@dataclass(frozen=True)
class _Counters:
    """Seconds that only grow: of the clock, of busy cores, of own processes, of waiting."""

    clock: float
    busy: float | None
    own: float
    waiting: float | None


class CoreMeter:
    """Counts from when it is made, or begun again."""

    def __init__(self, root: Path = Path("/")) -> None:
        """Begin to count.

        Args:
            root: Where `proc` is.
        """
        self._root = root
        self._cores = os.sched_getaffinity(0)
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self._began = self._read()

    def read(self) -> CoresUsed | None:
        """Return what was used since the beginning; None where the kernel does not tell, or no time has passed."""
        was, now = self._began, self._read()
        passed = now.clock - was.clock
        if was.busy is None or now.busy is None or passed < _SHORTEST_S:
            return None
        own = max(0.0, now.own - was.own) / passed
        others = max(0.0, (now.busy - was.busy) / passed - own)
        waited = None
        if was.waiting is not None and now.waiting is not None:
            waited = round((now.waiting - was.waiting) / passed, 3)
        return CoresUsed(len(self._cores), round(own, 3), round(others, 3), waited)

    def read_after(self, seconds: float) -> CoresUsed | None:
        """Return the same, once so much time has passed since the beginning."""
        time.sleep(max(0.0, self._began.clock + seconds - time.monotonic()))
        return self.read()

    def _read(self) -> _Counters:
        proc = self._root / "proc"
        busy = busy_seconds(text_of(proc / "stat") or "", self._cores)
        waiting = waiting_seconds(text_of(proc / "pressure/cpu") or "")
        return _Counters(time.monotonic(), busy, own_seconds(), waiting)


def busy_seconds(stat: str, cores: Collection[int]) -> float | None:
    """Return how long these cores were busy since the machine was booted, added up, out of /proc/stat; None without."""
    total, found = 0, 0
    for line in stat.splitlines():
        name, *counted = line.split()[: _COUNTED + 1] or [""]
        number = re.fullmatch(r"cpu(\d+)", name)
        if number is None or int(number[1]) not in cores or not all(word.isdigit() for word in counted):
            continue
        found += 1
        total += sum(int(ticks) for place, ticks in enumerate(counted) if place not in _IDLE)
    return total / os.sysconf("SC_CLK_TCK") if found else None


def waiting_seconds(pressure: str) -> float | None:
    """Return how long some program waited for a core, out of /proc/pressure/cpu; None without."""
    found = re.search(r"^some .*\btotal=(\d+)", pressure, re.MULTILINE)
    return int(found[1]) / 1e6 if found else None


def own_seconds() -> float:
    """Return the processor time of this process and everything it started, what has ended included.

    The time of a process that ends moves on to the one that waits for it, which is in the tree: the guard of an engine
    takes in what the engine left behind.
    """
    try:
        me = psutil.Process()
        tree = [me, *me.children(recursive=True)]
    except psutil.Error:
        return 0.0
    return sum(map(_seconds_of, tree))


def _seconds_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:  # gone meanwhile
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
