"""Which of the machines SGLang's rules are known for this one is."""

from __future__ import annotations

import re
from pathlib import Path

_NAMES = {"H200": "h200", "H100": "h100", "B200": "b200", "RTX PRO 6000": "rtx-pro-6000"}


def gpu_names(driver: Path = Path("/proc/driver/nvidia/gpus")) -> list[str]:
    """Return the model names of the NVIDIA GPUs the kernel driver shows; empty without a driver."""
    names = []
    for file in sorted(driver.glob("*/information")):
        try:
            found = re.search(r"^Model:\s*(.+)$", file.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        except OSError:
            continue
        if found:
            names.append(found[1].strip())
    return names


def known_as(gpu: str) -> str | None:
    """Return the machine name of a GPU, such as `h200` for `NVIDIA H200`; None when no rules are known for it."""
    return next((name for part, name in _NAMES.items() if re.search(rf"\b{part}\b", gpu)), None)
