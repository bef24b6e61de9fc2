"""Shared memory of engines that nobody uses any more."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from spectune.machine import users_of
from spectune.serving.guard import SEGMENTS, SHARED_MEMORY


@dataclass(frozen=True)
class Segment:
    """A segment of shared memory that no process uses."""

    path: str
    size: int


def unused_segments(folder: Path = SHARED_MEMORY) -> list[Segment]:
    """Return this user's segments of engines that no process has open or mapped."""
    sizes = _segments(folder)
    used = users_of(sizes.keys())
    return [Segment(path, size) for path, size in sorted(sizes.items()) if not used[path]]


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
