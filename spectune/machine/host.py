"""The machine without its GPUs, as far as its kernel tells; nothing in here raises."""

from __future__ import annotations

import os
import platform
import re
import resource
from dataclasses import dataclass
from pathlib import Path

import psutil

from spectune.errors import SpectuneError
from spectune.machine.reading import as_ranges, first_line, number_in, number_ranges, text_of

ROOT = Path("/")
GIB = 1 << 30
UNLIMITED = 1 << 60  # bytes; what the first version of control groups writes for no limit is above it
_CONTAINER_ID = re.compile(
    r"(?:docker|containers|libpod|crio|cri-containerd|kubepods\S*|lxc)[-/:](?:\S*[-/])?([0-9a-f]{64})"
)
_MARKS = {"docker": ".dockerenv", "podman": "run/.containerenv", "kubernetes": "var/run/secrets/kubernetes.io"}


@dataclass(frozen=True)
class Host:
    """Processor, memory, kernel and limits; None is what cannot be read.

    Attributes:
        cores: Cores this process may run on.
        bound_to: Which, as `0-15`.
        cores_of_machine: Cores there are.
        cgroup_cores: What the container's processor quota comes to; None without one.
        governor: Frequency governors of these cores; more than one are joined by commas.
        numa_nodes: Nodes the machine has.
        bound_nodes: Nodes of the cores this process may run on, as `0-1`.
        huge_pages: Setting of transparent huge pages.
        memory_limit_gib: What the container may use; None without a limit.
        ephemeral_ports: First and last port that outgoing connections take.
        open_files: Files a process may open if it asks for as many as it can have.
        boot_id: Changes with every boot.
        container: Kind of container, None outside of one.
    """

    cpu: str | None
    architecture: str
    cores: int
    bound_to: str
    cores_of_machine: int | None
    cgroup_cores: float | None
    governor: str | None
    max_mhz: int | None
    numa_nodes: int | None
    bound_nodes: str | None
    memory_gib: float
    available_gib: float
    memory_limit_gib: float | None
    swap_gib: float
    swap_used_gib: float
    huge_pages: str | None
    ephemeral_ports: tuple[int, int] | None
    open_files: int
    kernel: str
    boot_id: str | None
    container: str | None
    container_id: str | None


def read_host() -> Host:
    """Return what the kernel tells now.

    Raises:
        SpectuneError: It tells nothing.
    """
    proc, system = ROOT / "proc", ROOT / "sys"
    cores = sorted(os.sched_getaffinity(0))
    try:
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    except OSError as error:
        raise SpectuneError(
            f"cannot read {error.filename}: {error.strerror}; memory and processes are seen in /proc alone: mount it "
            "(mount -t proc proc /proc)"
        ) from None
    kind, container_id = container_of(ROOT)
    nodes = nodes_of(system, cores)
    frequency = number_in(system / f"devices/system/cpu/cpu{cores[0]}/cpufreq/cpuinfo_max_freq")
    return Host(
        cpu=cpu_model(text_of(proc / "cpuinfo") or ""),
        architecture=platform.machine(),
        cores=len(cores),
        bound_to=as_ranges(cores),
        cores_of_machine=os.cpu_count(),
        cgroup_cores=cgroup_cores(system / "fs/cgroup"),
        governor=governors(system, cores),
        max_mhz=None if frequency is None else frequency // 1000,
        numa_nodes=len(list((system / "devices/system/node").glob("node[0-9]*"))) or None,
        bound_nodes=as_ranges(nodes) or None,
        memory_gib=round(memory.total / GIB, 1),
        available_gib=round(memory.available / GIB, 1),
        memory_limit_gib=memory_limit(system / "fs/cgroup"),
        swap_gib=round(swap.total / GIB, 1),
        swap_used_gib=round(swap.used / GIB, 1),
        huge_pages=chosen(first_line(system / "kernel/mm/transparent_hugepage/enabled") or ""),
        ephemeral_ports=port_range(first_line(proc / "sys/net/ipv4/ip_local_port_range") or ""),
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        kernel=platform.release(),
        boot_id=first_line(proc / "sys/kernel/random/boot_id"),
        container=kind,
        container_id=container_id,
    )


def cpu_model(cpuinfo: str) -> str | None:
    """Return the processor's name out of /proc/cpuinfo."""
    found = re.search(r"^model name\s*:\s*(\S.*)$", cpuinfo, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or None


def cgroup_cores(group: Path) -> float | None:
    """Return how many cores the container's quota comes to; None without a quota."""
    quota, _, period = (first_line(group / "cpu.max") or "").partition(" ")
    if not quota:
        quota = str(number_in(group / "cpu/cpu.cfs_quota_us"))
        period = str(number_in(group / "cpu/cpu.cfs_period_us"))
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None  # `max`, -1 and nothing at all: no quota
    return round(int(quota) / int(period), 2)


def memory_limit(group: Path) -> float | None:
    """Return the GiB the container may use; None without a limit."""
    limit = number_in(group / "memory.max")
    if limit is None:
        limit = number_in(group / "memory/memory.limit_in_bytes")
    return None if limit is None or limit >= UNLIMITED else round(limit / GIB, 1)


def governors(system: Path, cores: list[int]) -> str | None:
    """Return the frequency governors of the cores; None where the kernel does not scale frequencies."""
    found = {first_line(system / f"devices/system/cpu/cpu{core}/cpufreq/scaling_governor") for core in cores}
    return ",".join(sorted(filter(None, found))) or None


def nodes_of(system: Path, cores: list[int]) -> list[int]:
    """Return the NUMA nodes that have one of the cores."""
    return sorted(
        int(folder.name.removeprefix("node"))
        for folder in (system / "devices/system/node").glob("node[0-9]*")
        if not set(cores).isdisjoint(number_ranges(first_line(folder / "cpulist") or ""))
    )


def chosen(setting: str) -> str | None:
    """Return the choice in brackets: `madvise` of `always [madvise] never`."""
    found = re.search(r"\[(\w+)]", setting)
    return found[1] if found else None


def port_range(text: str) -> tuple[int, int] | None:
    """Return first and last port of `ip_local_port_range`."""
    words = text.split()
    return (int(words[0]), int(words[1])) if len(words) == 2 and all(word.isdigit() for word in words) else None


def container_of(root: Path) -> tuple[str | None, str | None]:
    """Return kind and id of the container this process runs in; both None outside, the id None where it is hidden."""
    kind = next((kind for kind, mark in reversed(_MARKS.items()) if (root / mark).exists()), None)
    text = f"{text_of(root / 'proc/self/cgroup')}\n{text_of(root / 'proc/self/mountinfo')}"
    found = _CONTAINER_ID.search(text)
    if kind is None and found:
        kind = "docker" if "docker" in found[0] else "kubernetes" if "kube" in found[0] else "container"
    return kind, found[1][:12] if found and kind else None
