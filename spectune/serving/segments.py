"""Shared memory of engines: what a killed one leaves, and what our own leave behind when they end."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from spectune.machine import users_of

# Beginnings of the names of segments that engines and their libraries make.
SEGMENTS = ("nccl-", "torch_", "psm_", "sglang", "sem.mp-", "cuda.shm.")
FOLDER = Path("/dev/shm")  # noqa: S108 - nothing is made there

Users = Callable[[Collection[str]], Mapping[str, Collection[int]]]


@dataclass(frozen=True)
class Segment:
    """A segment of shared memory that no process uses."""

    path: str
    size: int


def unused_segments(folder: Path = FOLDER, users: Users = users_of) -> list[Segment]:
    """Return this user's segments of engines that no process has open or mapped."""
    sizes = _segments(folder)
    used = users(sizes.keys())
    return [Segment(path, size) for path, size in sorted(sizes.items()) if not used[path]]


def held_segments(pids: Collection[int], folder: Path = FOLDER) -> set[str]:
    """Return the segments that some processes have open or mapped."""
    used = users_of(_segments(folder).keys())
    return {path for path, holders in used.items() if not holders.isdisjoint(pids)}


def remove_unused(paths: Collection[str]) -> None:
    """Remove segments that ended processes had, except those that others still use."""
    for path, holders in users_of(paths).items():
        if not holders:
            with contextlib.suppress(OSError):  # its maker removed it after all
                Path(path).unlink()


def _segments(folder: Path) -> dict[str, int]:
    sizes = {}
    try:
        entries = [entry for entry in os.scandir(folder) if entry.name.startswith(SEGMENTS)]
    except OSError:  # there is no such folder
        return {}
    for entry in entries:
        with contextlib.suppress(OSError):  # it went while it was looked at
            status = entry.stat(follow_symlinks=False)
            if status.st_uid == os.getuid() and stat.S_ISREG(status.st_mode):
                sizes[entry.path] = status.st_size
    return sizes
