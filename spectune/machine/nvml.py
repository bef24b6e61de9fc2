"""Reading GPUs through NVIDIA's management library; nothing in here raises."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import psutil

from spectune.machine.driver import count_gpus
from spectune.machine.gpus import REASONS, Gpu, GpuProcess, Gpus
from spectune.machine.reading import number_in

MIB = 1 << 20
_WHOLE = 100  # percent
_POLICIES = {"power": 0, "thermal": 1, "board": 3, "reliability": 5}  # NVML_PERF_POLICY_*


def _reasons(nvml: Any, device: Any) -> tuple[str, ...]:
    try:
        bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(device)
    except nvml.NVMLError_FunctionNotFound:  # its name before driver 535
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device)
    return tuple(name for bit, name in REASONS.items() if bits & bit)


# Field of `Gpu` → how NVML is asked for it: the module, a device.
_ASKED: Mapping[str, Callable[[Any, Any], Any]] = {
    "uuid": lambda n, d: n.nvmlDeviceGetUUID(d),
    "name": lambda n, d: n.nvmlDeviceGetName(d),
    "pci": lambda n, d: _text(n.nvmlDeviceGetPciInfo(d).busId).lower(),
    "memory_total_mib": lambda n, d: n.nvmlDeviceGetMemoryInfo(d).total // MIB,
    "memory_used_mib": lambda n, d: n.nvmlDeviceGetMemoryInfo(d).used // MIB,
    "sm_mhz": lambda n, d: n.nvmlDeviceGetClockInfo(d, n.NVML_CLOCK_SM),
    "memory_mhz": lambda n, d: n.nvmlDeviceGetClockInfo(d, n.NVML_CLOCK_MEM),
    "max_sm_mhz": lambda n, d: n.nvmlDeviceGetMaxClockInfo(d, n.NVML_CLOCK_SM),
    "max_memory_mhz": lambda n, d: n.nvmlDeviceGetMaxClockInfo(d, n.NVML_CLOCK_MEM),
    "application_sm_mhz": lambda n, d: n.nvmlDeviceGetApplicationsClock(d, n.NVML_CLOCK_SM),
    "application_memory_mhz": lambda n, d: n.nvmlDeviceGetApplicationsClock(d, n.NVML_CLOCK_MEM),
    "power_w": lambda n, d: n.nvmlDeviceGetPowerUsage(d) / 1000,
    "power_limit_w": lambda n, d: n.nvmlDeviceGetEnforcedPowerLimit(d) / 1000,
    "default_power_limit_w": lambda n, d: n.nvmlDeviceGetPowerManagementDefaultLimit(d) / 1000,
    "temperature_c": lambda n, d: n.nvmlDeviceGetTemperature(d, n.NVML_TEMPERATURE_GPU),
    "throttle": _reasons,
    "persistence": lambda n, d: bool(n.nvmlDeviceGetPersistenceMode(d)),
    "mig": lambda n, d: bool(n.nvmlDeviceGetMigMode(d)[0]),
    "ecc": lambda n, d: bool(n.nvmlDeviceGetEccMode(d)[0]),
    "pcie_gen": lambda n, d: n.nvmlDeviceGetCurrPcieLinkGeneration(d),
    "max_pcie_gen": lambda n, d: n.nvmlDeviceGetMaxPcieLinkGeneration(d),
    "pcie_width": lambda n, d: n.nvmlDeviceGetCurrPcieLinkWidth(d),
    "max_pcie_width": lambda n, d: n.nvmlDeviceGetMaxPcieLinkWidth(d),
}


def read_gpus(own: Collection[int] = (), sysfs: Path = Path("/sys/bus/pci/devices")) -> Gpus:
    """Return the GPUs with what is on them, asked of the driver now.

    Args:
        own: Processes to leave out of `Gpu.processes`. When given, processes that cannot be seen from here are left out
            too, since they may be these under the host's numbers.
        sysfs: Where the kernel tells which NUMA node a PCI device is at.
    """
    import pynvml

    in_kernel = count_gpus()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Gpus(problem=_why_not(pynvml, error), in_kernel=in_kernel)
    try:
        count = pynvml.nvmlDeviceGetCount()
        devices = tuple(_read_gpu(pynvml, index, count, own, sysfs) for index in range(count))
        return Gpus(devices, _driver(pynvml), _cuda(pynvml), None, in_kernel)
    except pynvml.NVMLError as error:
        return Gpus(problem=_why_not(pynvml, error), in_kernel=in_kernel)
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _read_gpu(nvml: Any, index: int, count: int, own: Collection[int], sysfs: Path) -> Gpu:
    try:
        device = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        return Gpu(index, problem=str(error))
    values: dict[str, Any] = {}
    unread: dict[str, str] = {}
    problem = None
    for field, ask in _ASKED.items():
        try:
            values[field] = ask(nvml, device)
        except nvml.NVMLError as error:
            unread[field] = str(error)
            if error.value in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED):
                problem = str(error)
                break
    values["processes"] = None if problem else _processes(nvml, device, own)
    values["nvlink"] = None if problem else _nvlink(nvml, device, index, count)
    values["throttled_ms"] = {} if problem else _throttled(nvml, device)
    if "pci" in values:
        values["numa_node"] = _numa_node(sysfs, values["pci"])
    return Gpu(index, problem=problem, unread=unread, **values)


def _processes(nvml: Any, device: Any, own: Collection[int]) -> tuple[GpuProcess, ...] | None:
    """List compute and graphics processes; drivers before 510 know the second version of the question only."""
    found: dict[int, GpuProcess] = {}
    answered = False
    busy = _busy_percent(nvml, device)
    for kind in ("Compute", "Graphics"):
        for version in ("_v3", "_v2"):
            try:
                listed = getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses{version}")(device)
            except nvml.NVMLError:
                continue
            answered = True
            for entry in listed:
                held = None if entry.usedGpuMemory is None else entry.usedGpuMemory // MIB
                found[entry.pid] = GpuProcess(entry.pid, _name(entry.pid), held, busy.get(entry.pid))
            break
    if not answered:
        return None
    kept = (process for process in found.values() if process.pid not in own and (process.name or not own))
    return tuple(sorted(kept, key=lambda process: process.pid))


def _busy_percent(nvml: Any, device: Any) -> dict[int, int]:
    """Return pid → the largest share of the GPU's time that it took, of the seconds the driver remembers."""
    found: dict[int, int] = {}
    with contextlib.suppress(nvml.NVMLError):  # also where nobody computed
        for sample in nvml.nvmlDeviceGetProcessUtilization(device, 0):
            if sample.smUtil <= _WHOLE:  # old drivers leave entries of the list as they were
                found[sample.pid] = max(sample.smUtil, found.get(sample.pid, 0))
    return found


def _nvlink(nvml: Any, device: Any, index: int, count: int) -> tuple[int, ...] | None:
    """List the other GPUs that memory can be read from over NVLink; None where the driver does not say."""
    joined = []
    for other in range(count):
        if other == index:
            continue
        try:
            its = nvml.nvmlDeviceGetHandleByIndex(other)
            status = nvml.nvmlDeviceGetP2PStatus(device, its, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
        except nvml.NVMLError:
            return None
        if status == nvml.NVML_P2P_STATUS_OK:
            joined.append(other)
    return tuple(joined)


def _name(pid: int) -> str | None:
    try:
        return psutil.Process(pid).name()
    except (psutil.Error, OSError):
        return None


def _throttled(nvml: Any, device: Any) -> dict[str, int]:
    found = {}
    for name, policy in _POLICIES.items():
        with contextlib.suppress(nvml.NVMLError):
            found[name] = nvml.nvmlDeviceGetViolationStatus(device, policy).violationTime // 1_000_000  # from ns
    return found


def _driver(nvml: Any) -> str | None:
    try:
        return str(nvml.nvmlSystemGetDriverVersion())
    except nvml.NVMLError:
        return None


def _cuda(nvml: Any) -> str | None:
    try:
        version = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
    except nvml.NVMLError:
        return None
    return f"{version // 1000}.{version % 1000 // 10}"


def _numa_node(sysfs: Path, pci: str) -> int | None:
    """Return the node of a PCI device; NVML writes its domain with eight digits, the kernel with four."""
    domain, _, rest = pci.partition(":")
    node = number_in(sysfs / f"{domain[-4:]}:{rest}" / "numa_node")
    return None if node is None or node < 0 else node  # -1: the machine has one node, or does not say


def _text(value: str | bytes) -> str:
    return value.decode("ascii", errors="replace") if isinstance(value, bytes) else value


def _why_not(nvml: Any, error: Exception) -> str:
    match getattr(error, "value", None):
        case nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            return "there is no NVIDIA driver library (libnvidia-ml.so.1)"
        case nvml.NVML_ERROR_DRIVER_NOT_LOADED:
            return "the NVIDIA driver is not loaded"
        case nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            return "the driver library and the loaded kernel driver are of different versions"
        case _:
            return f"the NVIDIA driver does not answer ({error})"
