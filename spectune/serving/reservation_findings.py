"""What is reserved on this machine, for `spectune doctor`. A pure function; nothing is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spectune.machine import WAITS, Finding, Gpu
from spectune.serving.gpu_reservation import PREFIX
from spectune.serving.machine_lock import Holder, file_name


def reservation_findings(gpus: Sequence[Gpu], held: Mapping[str, Holder]) -> list[Finding]:
    """Return who has which GPUs.

    Args:
        gpus: Of this machine.
        held: What `held_locks` found.
    """
    called = {file_name(PREFIX + gpu.key): gpu.called for gpu in gpus}
    by_holder: dict[Holder, list[str]] = {}
    for lock, holder in held.items():
        if lock.startswith(PREFIX):
            by_holder.setdefault(holder, []).append(called.get(lock, lock.removeprefix(PREFIX)))
    return [
        Finding("gpu-reserved", "info", f"{holder} has GPU {', '.join(sorted(names))}", WAITS)
        for holder, names in by_holder.items()
    ]


def reserved_gpus(gpus: Sequence[Gpu], held: Mapping[str, Holder]) -> dict[int, str]:
    """Return the GPUs that a spectune has, by number, and which one, in words.

    Args:
        gpus: Of this machine.
        held: What `held_locks` found.
    """
    return {gpu.index: str(held[name]) for gpu in gpus if (name := file_name(PREFIX + gpu.key)) in held}
