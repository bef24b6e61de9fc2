"""Room on the disks that a search writes to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30


@dataclass(frozen=True)
class Disk:
    """One place that is written to.

    Attributes:
        role: What lies there.
        path: The place, or the nearest folder above it that exists.
        free_gib: What this user can still write.
        writable: Whether this user may write there.
    """

    role: str
    path: str
    free_gib: float
    total_gib: float
    writable: bool


def read_disks(cwd: Path, environ: Mapping[str, str]) -> list[Disk]:
    """Return the disks of studies, temporary files, shared memory and the model cache; unreadable ones are left out."""
    home = Path(environ.get("HOME", "/"))
    hub = environ.get("HF_HUB_CACHE") or Path(environ.get("HF_HOME") or home / ".cache/huggingface") / "hub"
    places = {
        "studies": cwd / "studies",
        "temporary files": Path(tempfile.gettempdir()),
        "shared memory": Path("/dev/shm"),  # noqa: S108 - its size is asked, nothing is written
        "model cache": Path(hub),
    }
    return [disk for role, path in places.items() if (disk := _disk(role, path)) is not None]


def _disk(role: str, path: Path) -> Disk | None:
    try:
        there = next(folder for folder in (path, *path.parents) if folder.is_dir())
        usage = shutil.disk_usage(there)
    except (OSError, StopIteration):
        return None
    return Disk(role, str(there), round(usage.free / GIB, 2), round(usage.total / GIB, 2), os.access(there, os.W_OK))
