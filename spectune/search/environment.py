"""The machine and software a study ran on (`environment.json`)."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

import psutil

from spectune import __version__
from spectune.engines.sglang.machine import count_gpus

LIBRARIES = ("optuna", "numpy", "aiohttp")


def describe_environment(engine: str) -> dict[str, Any]:
    """Return what a reader needs to tell this machine and software from another; no value of any variable is kept.

    Args:
        engine: Name and version of the engine.
    """
    frequency = psutil.cpu_freq()
    return {
        "schema": 1,
        "spectune": __version__,
        "engine": engine,
        "python": sys.version.split()[0],
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "cpu_mhz": round(frequency.max or frequency.current) if frequency else None,
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "gpus": count_gpus(),
        "boot_id": _first_line(Path("/proc/sys/kernel/random/boot_id")),
    }


def _cpu_model() -> str:
    for line in (_read(Path("/proc/cpuinfo")) or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _first_line(path: Path) -> str | None:
    text = _read(path)
    return text.splitlines()[0] if text else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
