"""What is wrong with the GPUs, as pure functions of what was read of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from spectune.counts import count
from spectune.machine.finding import Finding
from spectune.machine.gpus import IDLE, POWER_CAP, SLOWDOWNS, Gpu, Gpus, holders, visible

NO_GPU = "no NVIDIA driver: only the cpu-reference runtime and the simulated engine work here"
TAKEN = 0.1  # share of a GPU's memory; SGLang refuses to start when one GPU has 10 % less free than another
WAITS = "a search here takes others, or waits until they are given back"
LISTING = "nvidia-smi --query-compute-apps=gpu_uuid,pid,name,used_memory --format=csv"


def gpu_findings(
    gpus: Gpus, devices_variable: str | None = None, reserved: Mapping[int, str] = MappingProxyType({})
) -> list[Finding]:
    """Return what is wrong with the GPUs a launch would see.

    Args:
        gpus: What was read.
        devices_variable: Value of CUDA_VISIBLE_DEVICES, None when it is not set.
        reserved: Which of them a spectune has, by number, and which one, in words.
    """
    if gpus.problem is not None:
        return [_unanswered(gpus)]
    shown = visible(gpus.devices, devices_variable)
    findings = []
    if not shown:
        seen = f"CUDA_VISIBLE_DEVICES={devices_variable} shows none of {count(len(gpus.devices), 'GPU')}"
        if not gpus.devices:
            seen = f"the NVIDIA driver {gpus.driver} shows no GPU"
        findings.append(
            Finding(
                "no-gpu",
                "warning",
                seen,
                "only the cpu-reference runtime and the simulated engine work",
                "nvidia-smi -L",
            )
        )
    for look in _LOOKS:
        findings += look(shown)
    return [*findings, *_held(shown, reserved)]


def _unanswered(gpus: Gpus) -> Finding:
    problem = gpus.problem or ""
    if "different versions" in problem:
        why = "no program can use the GPUs until they agree"
        return Finding("driver-mismatch", "fatal", problem, why, "sudo reboot  # or unload and load the nvidia modules")
    if gpus.in_kernel:
        seen = f"the kernel shows {count(gpus.in_kernel, 'GPU')}, but {problem}"
        why = "clocks, memory and processes of the GPUs cannot be watched, and engines may not start"
        out = "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …"
        return Finding("driver-library", "fatal", seen, why, out)
    if "there is no" in problem:
        return Finding("no-gpu", "info", NO_GPU, "candidates for GPUs can be checked (--dry-run), not launched")
    why = "no engine can use a GPU; only the cpu-reference runtime and the simulated engine work here"
    return Finding("driver-silent", "warning", problem, why, "sudo modprobe nvidia && nvidia-smi")


def _lost(gpus: Sequence[Gpu]) -> Iterator[Finding]:
    for gpu in gpus:
        if gpu.problem is not None:
            why = "a launch that is given this GPU fails; the kernel log says what happened to it"
            yield Finding("gpu-lost", "fatal", f"{_called(gpu)}: {gpu.problem}", why, "sudo dmesg | grep -i xid")


def _held(gpus: Sequence[Gpu], reserved: Mapping[int, str]) -> Iterator[Finding]:
    """Name who holds the memory of GPUs; what a spectune has reserved is given back, and waited for."""
    for process, on in holders(gpus).items():
        if theirs := [number for number in on if number in reserved]:
            who = " and ".join(dict.fromkeys(reserved[number] for number in theirs))
            seen = f"{process} is on GPU {_numbers(theirs)}, reserved by {who}"
            yield Finding("gpu-in-use", "info", seen, WAITS)
        if not (numbers := [number for number in on if number not in reserved]):
            continue
        total = sum(gpu.memory_total_mib or 0 for gpu in gpus if gpu.index in numbers)
        much = process.memory_mib is None or process.memory_mib >= TAKEN * total
        yield Finding(
            "gpu-in-use",
            "fatal" if much else "warning",
            f"{process} is on GPU {_numbers(numbers)}",
            "an engine finds too little free memory there, or shares the GPU's time with it; spectune never ends it",
            f"ps -o user,pid,etime,args -p {process.pid}  # then end it, or set CUDA_VISIBLE_DEVICES to other GPUs",
        )
    for gpu in gpus:
        used, size = gpu.memory_used_mib, gpu.memory_total_mib
        if used is None or not size or gpu.processes or gpu.index in reserved:
            continue
        if used > TAKEN * size:
            yield Finding(
                "gpu-memory-held",
                "fatal",
                f"{used / 1024:.1f} of {size / 1024:.1f} GiB of {_called(gpu)} are in use, and no process is shown",
                "another container holds them, or a process whose end the driver has not finished",
                f"{LISTING}  # on the host, outside of containers",
            )


def _slow(gpus: Sequence[Gpu]) -> Iterator[Finding]:
    for gpu in gpus:
        reasons = set(gpu.throttle or ())
        if slowed := sorted(reasons & SLOWDOWNS):
            why = "its clocks are held back now: every figure would be too low, and change when it cools"
            out = f"nvidia-smi -q -d PERFORMANCE,TEMPERATURE -i {gpu.index}"
            yield Finding("gpu-throttled", "warning", f"{_called(gpu)}: {', '.join(slowed)}", why, out)
        limit, default = gpu.power_limit_w, gpu.default_power_limit_w
        if limit is not None and default is not None and limit < default:
            now = ", and it is at that limit now" if POWER_CAP in reasons else ""
            seen = f"{_called(gpu)} may draw {limit:g} W; its default is {default:g} W{now}"
            why = "under load its clocks follow the limit"
            yield Finding("power-limit", "warning", seen, why, f"sudo nvidia-smi -i {gpu.index} -pl {default:.0f}")
        clock, most = gpu.application_sm_mhz, gpu.max_sm_mhz
        if clock is not None and most is not None and "application_clocks" in reasons and clock < most:
            seen = f"{_called(gpu)} is set to {clock} MHz; its maximum is {most} MHz"
            why = "somebody fixed its clocks; figures hold for these clocks only"
            yield Finding(
                "clocks-fixed",
                "info",
                seen,
                why,
                f"sudo nvidia-smi -i {gpu.index} -rac && sudo nvidia-smi -i {gpu.index} -rgc",
            )


def _links(gpus: Sequence[Gpu]) -> Iterator[Finding]:
    for gpu in gpus:
        width, widest = gpu.pcie_width, gpu.max_pcie_width
        why = "tensor parallelism without NVLink moves every token's sums across this link"
        if width is not None and widest is not None and width < widest:
            seen = f"{_called(gpu)} runs its PCIe link {width} lanes wide; it could {widest}"
            yield Finding(
                "pcie-width", "warning", seen, why, f"sudo lspci -vv -s {gpu.pci or ''} | grep -E 'LnkCap|LnkSta'"
            )
        gen, best = gpu.pcie_gen, gpu.max_pcie_gen
        if gen is not None and best is not None and gen < best and IDLE not in (gpu.throttle or ()):
            seen = f"{_called(gpu)} runs its PCIe link at generation {gen} under load; it could {best}"
            yield Finding("pcie-generation", "warning", seen, why, f"nvidia-smi -q -d PIDS,CLOCK -i {gpu.index}")


def _set_up(gpus: Sequence[Gpu]) -> Iterator[Finding]:
    for gpu in gpus:
        if gpu.mig:
            why = "a launch sees slices of it; spectune counts and compares whole GPUs"
            yield Finding(
                "mig", "warning", f"{_called(gpu)} is in MIG mode", why, f"sudo nvidia-smi -i {gpu.index} -mig 0"
            )
    if resting := [gpu.index for gpu in gpus if gpu.persistence is False]:
        why = "the driver loads anew for every launch: each starts seconds later"
        yield Finding(
            "persistence", "info", f"persistence mode is off on GPU {_numbers(resting)}", why, "sudo nvidia-smi -pm 1"
        )
    if len(kinds := {gpu.name for gpu in gpus if gpu.name}) > 1:
        why = "tensor parallelism runs at the pace of the slowest; name equal ones in CUDA_VISIBLE_DEVICES"
        yield Finding(
            "unequal-gpus", "warning", f"the GPUs are not alike: {', '.join(sorted(kinds))}", why, "nvidia-smi -L"
        )


_LOOKS: tuple[Callable[[Sequence[Gpu]], Iterator[Finding]], ...] = (_lost, _slow, _links, _set_up)


def _called(gpu: Gpu) -> str:
    return f"GPU {gpu.index}" + (f" ({gpu.name})" if gpu.name else "")


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
