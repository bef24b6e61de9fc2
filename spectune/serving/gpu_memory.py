"""GPU memory around a launch: free before it, back after it. What holds it is waited for and named, never touched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from spectune.machine import Gpu, Gpus, holders, memory_not_back, read_gpus, visible
from spectune.machine.gpu_findings import TAKEN
from spectune.serving.waiting import POLL_S, PROGRAM_S, InTheWay, wait_for

BACK_S = 60.0  # for the driver to take back what an ended process had
END_IT = (
    "spectune ends no other program: end it or name other GPUs in CUDA_VISIBLE_DEVICES, and the same command goes on"
)


@dataclass
class GpuMemory:
    """The memory of the GPUs of one launch.

    Attributes:
        count: GPUs it uses; with 0 nothing is read and nothing is waited for.
        variable: Its CUDA_VISIBLE_DEVICES, None where that is not set.
        read: Asks the driver.
        patience_s: How long somebody else may hold a GPU before a launch is given up.
        back_s: How long the memory of an ended launch may take to be free.
        poll_s: Between two looks.
    """

    count: int
    variable: str | None = None
    read: Callable[[], Gpus] = read_gpus
    patience_s: float = PROGRAM_S
    back_s: float = BACK_S
    poll_s: float = POLL_S
    _before: Gpus = field(default_factory=Gpus, init=False)

    async def wait_until_free(self, says: Callable[[str], None]) -> None:
        """Wait until nobody holds much of any of the GPUs.

        Args:
            says: Told who is waited for.

        Raises:
            SpectuneError: Somebody held one for too long.
        """

        async def attempt() -> InTheWay | None:
            self._before = await self._look()
            held = [gpu for gpu in self._before.devices if taken(gpu)]
            return InTheWay(who_holds(held), END_IT, self.patience_s) if held else None

        if self.count:
            await wait_for(attempt, says, self.poll_s)

    async def wait_until_back(self) -> str | None:
        """Wait until no more is in use than before the launch; returns who holds what is not back, None if all is."""
        deadline = time.monotonic() + self.back_s
        while self._before.devices:
            now = await self._look()
            missing = memory_not_back(self._before, now)
            if not missing:
                return None
            if time.monotonic() > deadline:
                more = ", ".join(f"{mib / 1024:.1f} GiB" for mib in missing.values())
                kept = [gpu for gpu in now.devices if gpu.key in missing]
                return f"{more} of GPU memory did not come back when the engine had ended: {who_holds(kept)}"
            await asyncio.sleep(self.poll_s)
        return None

    async def _look(self) -> Gpus:
        """Read the GPUs of the launch; the first of those it is shown, as SGLang takes them."""
        gpus = await asyncio.to_thread(self.read)
        return Gpus(visible(gpus.devices, self.variable)[: self.count])


def taken(gpu: Gpu) -> bool:
    """Whether too much of a GPU's memory is in use for a launch."""
    return (gpu.memory_used_mib or 0) > TAKEN * (gpu.memory_total_mib or 0)


def who_holds(gpus: Sequence[Gpu]) -> str:
    """Return who has memory on GPUs, in words."""
    found = holders(gpus)
    named = [f"{process} is on GPU {_numbers(on)}" for process, on in found.items()]
    alone = [gpu.index for gpu in gpus if not gpu.processes]
    if alone:
        used = sum(gpu.memory_used_mib or 0 for gpu in gpus if gpu.index in alone)
        named.append(
            f"{used / 1024:.1f} GiB of GPU {_numbers(alone)} are in use, by a process that cannot be seen from here"
        )
    return "; ".join(named)


def _numbers(numbers: Collection[int]) -> str:
    return ", ".join(map(str, numbers))
