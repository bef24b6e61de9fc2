"""What a machine must have before anything is downloaded to it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

from spectune.errors import SpectuneError

SUPPORTED_PYTHONS = ((3, 11), (3, 13))
OLDEST_GLIBC = (2, 34)
SUPPORTED_MACHINES = ("x86_64", "aarch64")
# What must stay free beside the installation: logs, caches and the studies themselves.
SPARE_BYTES = 500_000_000


def check_machine() -> None:
    """Refuse a machine the engine's wheels do not exist for.

    Raises:
        SpectuneError: In one sentence with what was found, the rule and the way out.
    """
    if sys.platform != "linux":
        raise SpectuneError(f"the engine runs on Linux, but this is {sys.platform}; use a Linux machine or container")
    if platform.machine() not in SUPPORTED_MACHINES:
        machines = " or ".join(SUPPORTED_MACHINES)
        raise SpectuneError(
            f"the engine's wheels exist for {machines}, but this machine is {platform.machine()}; use one of those"
        )
    check_python(sys.version_info[:2])
    check_glibc(glibc_version())
    check_venv()


def check_python(version: tuple[int, int]) -> None:
    """Refuse a Python the engine's wheels do not exist for; the runtime is built with the Python that runs spectune."""
    oldest, newest = SUPPORTED_PYTHONS
    if sys.implementation.name != "cpython" or not oldest <= version <= newest:
        raise SpectuneError(
            f"the engine's wheels exist for CPython {_dotted(oldest)} to {_dotted(newest)}, but spectune runs on "
            f"{sys.implementation.name} {_dotted(version)}; install spectune with one of those"
        )


def check_glibc(version: tuple[int, int] | None) -> None:
    """Refuse a C library older than the one the engine's wheels are built against."""
    if version is None or version < OLDEST_GLIBC:
        found = "another C library" if version is None else _dotted(version)
        raise SpectuneError(
            f"the engine's wheels need glibc ≥ {_dotted(OLDEST_GLIBC)}, but this system has {found}; "
            "use Debian 12, Ubuntu 22.04 or newer"
        )


def check_venv() -> None:
    """Refuse a Python without the module that puts pip into a new environment."""
    if importlib.util.find_spec("ensurepip") is None:
        version = _dotted(sys.version_info[:2])
        raise SpectuneError(
            f"{sys.executable} lacks the module ensurepip, which building the runtime needs; "
            f"on Debian and Ubuntu run `apt install python{version}-venv`"
        )


def check_disk(folder: Path, needed: int) -> None:
    """Refuse a disk with too little room.

    Args:
        folder: Where it will be written; need not exist yet.
        needed: Bytes that will be written.
    """
    free = free_bytes(folder)
    if free < needed + SPARE_BYTES:
        raise SpectuneError(
            f"{folder} has {gigabytes(free)} free, but the installation takes {gigabytes(needed)} and leaves "
            f"{gigabytes(SPARE_BYTES)} spare; make room or set SPECTUNE_HOME to a folder on a larger disk"
        )


def free_bytes(folder: Path) -> int:
    """Free bytes of the disk a folder is or will be on."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free


def glibc_version() -> tuple[int, int] | None:
    """Version of the C library; None where it is not glibc."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        major, minor = version.split(".")[:2]
    except (OSError, ValueError):  # musl knows no such name
        return None
    return (int(major), int(minor)) if name == "glibc" else None


def gigabytes(size: int) -> str:
    """A size for people: "1.6 GB"."""
    return f"{size / 1e9:.1f} GB"


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
