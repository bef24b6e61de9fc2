"""What a launch would find on this machine."""

from __future__ import annotations

from pathlib import Path


def count_gpus(driver: Path = Path("/proc/driver/nvidia/gpus")) -> int:
    """Return how many NVIDIA GPUs the kernel driver shows to this container or machine."""
    return sum(1 for entry in driver.iterdir()) if driver.is_dir() else 0
