"""GPUs for one launch: a group that no other spectune on this machine has, and nobody else's program is on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from spectune.counts import count
from spectune.errors import SpectuneError
from spectune.machine import Gpu, Gpus, read_gpus, visible
from spectune.serving.gpu_groups import Group, choose
from spectune.serving.gpu_memory import END_IT, taken, who_holds
from spectune.serving.machine_lock import Holder, MachineLock, file_name, held_locks, try_lock
from spectune.serving.waiting import POLL_S, PROGRAM_S, REMINDER_S, SPECTUNE_S, InTheWay, Says, wait_for

PREFIX = "gpu-"
UNREADABLE = Gpu(0, uuid="all")  # stands for every GPU of a machine whose driver tells nothing of them


@dataclass(frozen=True)
class GpuGroup:
    """GPUs that are one launch's until `release`, or the end of this object or process.

    Attributes:
        gpus: Which, in the order the launch sees them; empty where they are not told apart.
        of: How many this machine has.
        named: Whether a launch would see others, or these in another order, unless it is told.
        locks: What keeps other spectunes off them.
    """

    gpus: Group = ()
    of: int = 0
    named: bool = False
    locks: Sequence[MachineLock] = field(default=(), repr=False)

    @property
    def variables(self) -> dict[str, str]:
        """What makes a launch see these GPUs and no others; nothing where it sees no others anyway.

        By their numbers, as SGLang's custom all-reduce reads them, in the order NVML and nvidia-smi count them; CUDA's
        own order may be another. Slices (MIG) have no numbers, only names.
        """
        if not self.named:
            return {}
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(gpu.called for gpu in self.gpus)}

    @property
    def part(self) -> Group:
        """The GPUs where they are a part of the machine; none where they are all of it."""
        return self.gpus if len(self.gpus) < self.of else ()

    def release(self) -> None:
        """Give them back; doing it twice is harmless."""
        for lock in self.locks:
            lock.release()


async def reserve_gpus(
    count: int,
    study: str,
    notes: Says,
    *,
    variable: str | None = None,
    read: Callable[[], Gpus] = read_gpus,
    folder: Path | None = None,
    poll_s: float = POLL_S,
    program_s: float = PROGRAM_S,
    spectune_s: float = SPECTUNE_S,
) -> GpuGroup:
    """Take a group of GPUs, as soon as one is free.

    Args:
        count: How many; of none, nothing is read and nothing is locked.
        study: What they are for, told to whoever waits for them.
        notes: Told who is waited for, now and then.
        variable: Value of spectune's own CUDA_VISIBLE_DEVICES: the GPUs it may use; None for all.
        read: Asks the driver.
        folder: Of the locks.
        poll_s: Between two attempts.
        program_s: How long programs that are no spectune's are waited for.
        spectune_s: How long other spectunes are.

    Raises:
        SpectuneError: There are too few, or too few became free in time.
    """
    if not count:
        return GpuGroup()

    async def attempt() -> GpuGroup | InTheWay:
        found = (await asyncio.to_thread(read)).devices
        if not found:
            got = take_group((UNREADABLE,), 1, study, folder)
            return _in_the_way(got, spectune_s) if isinstance(got, InUse) else GpuGroup(locks=got.locks)
        usable = _usable(visible(found, variable), count, variable)
        got = take_group(usable, count, study, folder)
        if isinstance(got, InUse):
            return _in_the_way(got, spectune_s if len(usable) - len(got.taken) >= count else program_s)
        return replace(got, of=len(found), named=variable is not None or count < len(found))

    return await wait_for(attempt, notes, poll_s, every_s=REMINDER_S)


@dataclass(frozen=True)
class InUse:
    """Why no group of GPUs can be had now.

    Attributes:
        locked: Those that a spectune has.
        taken: Those that other programs fill.
    """

    locked: Mapping[str, Holder]
    taken: Group

    def __str__(self) -> str:
        by_holder: dict[str, list[str]] = {}
        for name, holder in self.locked.items():
            by_holder.setdefault(str(holder), []).append(name)
        words = [f"{holder} has GPU {', '.join(names)}" for holder, names in by_holder.items()]
        words += [who_holds(self.taken)] if self.taken else []
        return "; ".join(words) or "GPUs that have just been given back"


def take_group(gpus: Sequence[Gpu], count: int, study: str, folder: Path | None) -> GpuGroup | InUse:
    """Lock the best group that is free, all of it or nothing.

    Nobody waits while holding a part, so no order of requests can end in a deadlock. GPUs that nobody at all is on are
    preferred to those where something small runs.

    Args:
        gpus: Those that may be used, as they are now.
        count: How many.
        study: What for.
        folder: Of the locks.
    """
    free = {gpu.key for gpu in gpus if not taken(gpu)}
    quiet = {gpu.key for gpu in gpus if not gpu.processes}
    while (group := choose(gpus, free & quiet, count) or choose(gpus, free, count)) is not None:
        locks: list[MachineLock] = []
        for key in sorted(gpu.key for gpu in group):
            lock = try_lock(PREFIX + key, study, folder)
            if lock is None:
                free.remove(key)
                break
            locks.append(lock)
        else:
            return GpuGroup(group, locks=locks)
        for lock in locks:
            lock.release()
    held = held_locks(folder)
    by_spectune = {gpu.key: held[name] for gpu in gpus if (name := file_name(PREFIX + gpu.key)) in held}
    return InUse(
        {gpu.called: by_spectune[gpu.key] for gpu in gpus if gpu.key in by_spectune},
        tuple(gpu for gpu in gpus if taken(gpu) and gpu.key not in by_spectune),
    )


def _usable(shown: Group, wanted: int, variable: str | None) -> Group:
    """Return the GPUs that work.

    Raises:
        SpectuneError: They are too few for a launch, whoever uses them.
    """
    usable = tuple(gpu for gpu in shown if gpu.problem is None)
    if len(usable) >= wanted:
        return usable
    seen = "this machine has" if variable is None else f"CUDA_VISIBLE_DEVICES={variable} shows"
    broken = "".join(f"; GPU {gpu.index}: {gpu.problem}" for gpu in shown if gpu.problem is not None)
    raise SpectuneError(f"engine.gpus asks for {count(wanted, 'GPU')}, but {seen} {len(usable)} that work{broken}")


def _in_the_way(use: InUse, patience_s: float) -> InTheWay:
    return InTheWay(str(use), END_IT, patience_s)
