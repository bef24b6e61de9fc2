"""Which processes use a file: by an open descriptor or by memory that shows it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

Identity = tuple[int, int, int]
"""Major and minor number of a device, inode: a name may be one of several, as glibc's semaphores have."""


def users_of(paths: Collection[str], proc: Path = Path("/proc")) -> dict[str, set[int]]:
    """Return path → processes that have it open or mapped; a process this user may not look into is not among them.

    Args:
        paths: Files; those that do not exist are used by nobody.
        proc: The kernel's process folder.
    """
    found: dict[str, set[int]] = {path: set() for path in paths}
    named: dict[Identity, str] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            named[_identity(Path(path).stat())] = path
    if not named:
        return found
    for process in proc.glob("[0-9]*"):
        used = {*_opened_by(process), *_mapped_by(process)}  # in this order: a file is closed after it was mapped
        for identity in used & named.keys():
            found[named[identity]].add(int(process.name))
    return found


def _mapped_by(process: Path) -> Iterator[Identity]:
    try:
        with (process / "maps").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:  # 7f2c8a000000-7f2c8a001000 rw-s 00000000 00:1a 17 /dev/shm/sem.x
                _, _, _, device, inode, *_ = line.split(maxsplit=5)
                if inode != "0":
                    major, minor = device.split(":")
                    yield int(major, 16), int(minor, 16), int(inode)
    except (OSError, ValueError):  # gone, or another user's
        return


def _opened_by(process: Path) -> Iterator[Identity]:
    try:
        for descriptor in os.scandir(process / "fd"):
            with contextlib.suppress(OSError):  # closed meanwhile
                yield _identity(descriptor.stat())
    except OSError:
        return


def _identity(status: os.stat_result) -> Identity:
    return os.major(status.st_dev), os.minor(status.st_dev), status.st_ino
