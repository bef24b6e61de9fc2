"""What NVIDIA's kernel driver shows without any library."""

from __future__ import annotations

from pathlib import Path

DRIVER_GPUS = Path("/proc/driver/nvidia/gpus")


def count_gpus() -> int:
    """Return how many NVIDIA GPUs the kernel driver shows to this container or machine."""
    try:
        return sum(1 for entry in DRIVER_GPUS.iterdir())
    except OSError:
        return 0
