"""Which processes run on a runtime."""

from __future__ import annotations

from pathlib import Path

import psutil


def processes_of(folder: Path) -> list[int]:
    """Process ids that run the interpreter below a folder or have a library of it loaded, oldest first.

    An engine's workers rename themselves and its interpreter is a link out of the folder, so the command line alone
    does not tell: what they have loaded does.
    """
    prefix = f"{folder}/"
    found: list[tuple[float, int]] = []
    for process in psutil.process_iter(["pid", "cmdline", "create_time"]):
        command = process.info["cmdline"] or []
        if (command and command[0].startswith(prefix)) or _maps(process, prefix):
            found.append((process.info["create_time"], process.info["pid"]))
    return [pid for _, pid in sorted(found)]


def _maps(process: psutil.Process, prefix: str) -> bool:
    try:
        return any(region.path.startswith(prefix) for region in process.memory_maps())
    except (psutil.Error, OSError):  # another user's, or just gone
        return False
