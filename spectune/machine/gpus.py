"""The GPUs of a machine, as read at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

IDLE, POWER_CAP = "gpu_idle", "sw_power_cap"
# Bit → name of NVML's clock event reasons (nvml.h, nvmlClocksEventReason*).
REASONS = {
    0x001: IDLE,
    0x002: "application_clocks",
    0x004: POWER_CAP,
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake",
    0x100: "display_clocks",
}
SLACK_MIB = 512  # less is the driver's own coming and going
SLICE = "MIG-"  # how the names of slices begin
SLOWDOWNS = frozenset({"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake"})


@dataclass(frozen=True)
class GpuProcess:
    """A process that has something on a GPU.

    Attributes:
        pid: Its process id as the driver reports it, which in a container may be the host's.
        name: Its name without arguments; None when no such process can be seen from here.
        memory_mib: GPU memory it holds; None when the driver does not say.
        busy_percent: The largest share of the GPU's time that it took lately; None when the driver does not say.
    """

    pid: int
    name: str | None = None
    memory_mib: int | None = None
    busy_percent: int | None = None

    def __str__(self) -> str:
        held = "" if self.memory_mib is None else f" with {self.memory_mib / 1024:.1f} GiB"
        return f"{self.name or 'a process that cannot be seen from here'} (pid {self.pid}){held}"


@dataclass(frozen=True)
class Gpu:
    """One GPU; None is what its driver does not tell.

    Attributes:
        index: Number in the driver's order.
        problem: Why it is of no use at all, such as that it is lost.
        uuid: Its name for good, or that of a slice of it (MIG).
        nvlink: Numbers of the GPUs that NVLink joins it to.
        throttle: Names of the reasons that hold its clocks back now (`REASONS`).
        throttled_ms: Milliseconds since the driver was loaded in which `power`, `thermal`, `board` or `reliability`
            limits held it back.
        processes: Other processes on it; None when they cannot be listed.
        unread: Field → why it is None.
    """

    index: int
    uuid: str | None = None
    name: str | None = None
    pci: str | None = None
    numa_node: int | None = None
    nvlink: tuple[int, ...] | None = None
    problem: str | None = None
    memory_total_mib: int | None = None
    memory_used_mib: int | None = None
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    max_sm_mhz: int | None = None
    max_memory_mhz: int | None = None
    application_sm_mhz: int | None = None
    application_memory_mhz: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    default_power_limit_w: float | None = None
    temperature_c: int | None = None
    throttle: tuple[str, ...] | None = None
    throttled_ms: Mapping[str, int] = field(default_factory=dict)
    persistence: bool | None = None
    mig: bool | None = None
    ecc: bool | None = None
    pcie_gen: int | None = None
    max_pcie_gen: int | None = None
    pcie_width: int | None = None
    max_pcie_width: int | None = None
    processes: tuple[GpuProcess, ...] | None = None
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What it is known by across reboots: its UUID, or its number where that is not told."""
        return self.uuid or str(self.index)

    @property
    def called(self) -> str:
        """What CUDA_VISIBLE_DEVICES calls it: its number, or the name of a slice, which has none."""
        return self.key if self.key.startswith(SLICE) else str(self.index)


@dataclass(frozen=True)
class Gpus:
    """All GPUs of this machine or container.

    Attributes:
        devices: In the driver's order.
        driver: Version of the kernel driver.
        cuda: Newest CUDA version the driver supports.
        problem: Why nothing could be asked; None when the driver answered.
        in_kernel: How many GPUs the kernel driver shows, whatever its library says.
    """

    devices: tuple[Gpu, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    problem: str | None = None
    in_kernel: int = 0

    def memory_used(self) -> dict[str, int]:
        """Return GPU → MiB of its memory in use; GPUs that do not tell are left out."""
        return {gpu.key: gpu.memory_used_mib for gpu in self.devices if gpu.memory_used_mib is not None}


def visible(devices: Sequence[Gpu], variable: str | None) -> tuple[Gpu, ...]:
    """Return the GPUs that CUDA shows to a program, in its order.

    Args:
        devices: All of them.
        variable: Value of CUDA_VISIBLE_DEVICES: numbers, beginnings of UUIDs or names of slices. As CUDA reads it, the
            first entry that is nothing, or stands there already, ends the list. None: not set.
    """
    if variable is None:
        return tuple(devices)
    chosen: list[Gpu] = []
    for entry in (part.strip() for part in variable.split(",")):
        found = [gpu for gpu in devices if entry and (entry == str(gpu.index) or (gpu.uuid or "").startswith(entry))]
        exact = [gpu for gpu in found if entry == str(gpu.index)] or found
        if entry.startswith(SLICE):
            exact = [Gpu(len(chosen), uuid=entry)]
        if len(exact) != 1 or exact[0].key in {gpu.key for gpu in chosen}:
            break
        chosen.append(exact[0])
    return tuple(chosen)


def memory_not_back(before: Gpus, after: Gpus) -> dict[str, int]:
    """Return GPU → MiB that are in use beyond what was in use before a launch; empty when all memory is back.

    Args:
        before: Read before the launch.
        after: Read after its end.
    """
    was = before.memory_used()
    more = {key: used - was.get(key, 0) for key, used in after.memory_used().items()}
    return {key: mib for key, mib in more.items() if mib > SLACK_MIB}


def holders(gpus: Iterable[Gpu]) -> dict[GpuProcess, list[int]]:
    """Return process → numbers of the GPUs it is on; its memory is the sum over them."""
    on: dict[int, list[Gpu]] = {}
    for gpu in gpus:
        for process in gpu.processes or ():
            on.setdefault(process.pid, []).append(gpu)
    result = {}
    for pid, its in on.items():
        entries = [process for gpu in its for process in gpu.processes or () if process.pid == pid]
        held = [entry.memory_mib for entry in entries if entry.memory_mib is not None]
        total = GpuProcess(pid, next((e.name for e in entries if e.name), None), sum(held) if held else None)
        result[total] = [gpu.index for gpu in its]
    return result
