"""What doctor says of a machine, the way out included."""

from __future__ import annotations

from typing import Any

import pytest
from machine_samples import ROOMY, gpu, gpus, machine

from spectune.machine import Disk, Finding, Gpu, GpuProcess, Gpus, gpu_findings, host_findings, in_order
from spectune.machine.software import ConfigFile


def of_gpus(*changed: Gpu, variable: str | None = None) -> dict[str, Finding]:
    return {finding.name: finding for finding in gpu_findings(gpus(*changed), variable)}


def of_host(*disks: Disk, **changes: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in host_findings(machine(**changes), disks or [ROOMY])}


def test_a_healthy_machine_has_no_findings() -> None:
    assert of_gpus() == {}
    assert of_host() == {}


def test_without_a_gpu_it_says_what_works() -> None:
    (finding,) = gpu_findings(Gpus(problem="there is no NVIDIA driver library (libnvidia-ml.so.1)"))
    assert (finding.name, finding.severity) == ("no-gpu", "info")
    assert finding.seen == "no NVIDIA driver: only the cpu-reference runtime and the simulated engine work here"


@pytest.mark.parametrize(
    ("problem", "in_kernel", "name", "severity"),
    [
        ("the driver library and the loaded kernel driver are of different versions", 8, "driver-mismatch", "fatal"),
        ("there is no NVIDIA driver library (libnvidia-ml.so.1)", 8, "driver-library", "fatal"),
        ("the NVIDIA driver is not loaded", 0, "driver-silent", "warning"),
    ],
)
def test_drivers_that_do_not_answer(problem: str, in_kernel: int, name: str, severity: str) -> None:
    (finding,) = gpu_findings(Gpus(problem=problem, in_kernel=in_kernel))
    assert (finding.name, finding.severity) == (name, severity)
    assert finding.way_out


def test_held_memory_names_its_holder_once_for_all_gpus() -> None:
    """sglang#31645: a scheduler that outlived its launcher holds 101 GB on each GPU."""
    left = GpuProcess(4711, "sglang::scheduler_TP0", 101_000)
    found = gpu_findings(gpus(*(gpu(index, processes=(left,), memory_used_mib=101_500) for index in range(8))))
    (finding,) = found
    assert finding.severity == "fatal"
    assert "sglang::scheduler_TP0 (pid 4711) with 789.1 GiB is on GPU 0, 1, 2, 3, 4, 5, 6, 7" in finding.seen
    assert "-p 4711" in finding.way_out


def test_memory_that_another_search_holds_is_waited_for() -> None:
    engine = GpuProcess(4711, "sglang::scheduler_TP0", 101_000)
    whole = gpus(*(gpu(index, processes=(engine,), memory_used_mib=101_500) for index in range(4)))
    theirs = "spectune (pid 12) for the study nightly"
    (finding,) = gpu_findings(whole, reserved=dict.fromkeys(range(4), theirs))
    assert finding.severity == "info"
    assert finding.seen.endswith(f"is on GPU 0, 1, 2, 3, reserved by {theirs}")
    assert "waits until they are given back" in finding.why
    some = gpu_findings(whole, reserved={0: theirs, 1: theirs})
    assert [(one.severity, "GPU 2, 3" in one.seen) for one in some] == [("info", False), ("fatal", True)]
    hidden = gpus(gpu(2, memory_used_mib=100_000))
    assert gpu_findings(hidden, reserved={2: theirs}) == [], "of another container's spectune no process is shown"


def test_memory_without_a_process_is_said_too() -> None:
    """sglang#16756: memory is held and nvidia-smi shows nobody: another container, or a driver not done yet."""
    found = of_gpus(gpu(2, memory_used_mib=100_000))
    assert found["gpu-memory-held"].severity == "fatal"
    assert "97.7 of 140.4 GiB of GPU 2" in found["gpu-memory-held"].seen


def test_a_small_stranger_is_a_warning() -> None:
    assert of_gpus(gpu(0, processes=(GpuProcess(9, "Xorg", 40),)))["gpu-in-use"].severity == "warning"


def test_gpus_that_a_launch_does_not_see_do_not_count() -> None:
    taken = gpu(5, processes=(GpuProcess(9, "train", 90_000),))
    assert of_gpus(taken, variable="0,1,2,3") == {}
    assert of_gpus(taken, variable="GPU-00000005")["gpu-in-use"].severity == "fatal"
    assert of_gpus(variable="")["no-gpu"].severity == "warning"


@pytest.mark.parametrize(
    ("changed", "name", "words"),
    [
        (gpu(1, problem="GPU is lost"), "gpu-lost", "dmesg"),
        (gpu(1, throttle=("hw_thermal_slowdown",)), "gpu-throttled", "-i 1"),
        (gpu(1, power_limit_w=450.0), "power-limit", "sudo nvidia-smi -i 1 -pl 700"),
        (gpu(1, application_sm_mhz=1200, throttle=("application_clocks",)), "clocks-fixed", "-rgc"),
        (gpu(1, pcie_width=8), "pcie-width", "lspci"),
        (gpu(1, pcie_gen=3, throttle=()), "pcie-generation", "nvidia-smi"),
        (gpu(1, mig=True), "mig", "-mig 0"),
        (gpu(1, persistence=False), "persistence", "-pm 1"),
        (gpu(1, name="NVIDIA L4"), "unequal-gpus", "nvidia-smi -L"),
    ],
)
def test_each_gpu_finding_comes_alone_with_a_command(changed: Gpu, name: str, words: str) -> None:
    found = of_gpus(changed)
    assert list(found) == [name]
    assert words in found[name].way_out


def test_an_idle_link_is_not_reported() -> None:
    assert of_gpus(gpu(0, pcie_gen=1, throttle=("gpu_idle",))) == {}


@pytest.mark.parametrize(
    ("changes", "name", "severity"),
    [
        ({"host": {"governor": "performance,powersave"}}, "governor", "warning"),
        ({"host": {"swap_used_gib": 3.0}}, "swap", "warning"),
        ({"host": {"open_files": 1024}}, "open-files", "warning"),
        ({"host": {"cgroup_cores": 8.0}}, "core-quota", "warning"),
        ({"software": {"tools": {"cc": "/usr/bin/cc", "nvcc": None}}}, "no-compiler", "warning"),
        ({"software": {"nccl_files": (ConfigFile("/etc/nccl.conf", "x", ("NCCL_ALGO",)),)}}, "nccl-file", "warning"),
        ({"software": {"variables": {"NCCL_ALGO": "Tree"}}}, "nccl-variable", "warning"),
        ({"software": {"variables": {"SGLANG_SIMULATE_ACC_LEN": "3"}}}, "faked-acceptance", "fatal"),
        ({"software": {"sitecustomize": "/x/sitecustomize.py"}}, "sitecustomize", "info"),
    ],
)
def test_each_host_finding_comes_alone(changes: dict[str, Any], name: str, severity: str) -> None:
    found = of_host(**changes)
    assert [(key, finding.severity) for key, finding in found.items()] == [(name, severity)]


def test_tree_alone_is_said_to_end_launches() -> None:
    assert "Tree alone" in of_host(software={"variables": {"NCCL_ALGO": "tree"}})["nccl-variable"].why
    assert "Tree alone" not in of_host(software={"variables": {"NCCL_ALGO": "Ring"}})["nccl-variable"].why


@pytest.mark.parametrize(
    ("disk", "found"),
    [
        (Disk("studies", "/d", 0.01, 100, writable=True), [("little-room", "fatal")]),
        (Disk("studies", "/d", 1.0, 100, writable=True), [("little-room", "warning")]),
        (Disk("studies", "/d", 90.0, 100, writable=False), [("not-writable", "fatal")]),
        (Disk("shared memory", "/dev/shm", 0.06, 0.06, writable=True), [("little-room", "warning")]),
        (Disk("shared memory", "/dev/shm", 0.0, 0.06, writable=True), [("little-room", "fatal")]),
        (Disk("model cache", "/c", 5.0, 100, writable=True), [("little-room", "warning")]),
        (Disk("temporary files", "/tmp", 50.0, 100, writable=True), []),
    ],
)
def test_room(disk: Disk, found: list[tuple[str, str]]) -> None:
    assert [(finding.name, finding.severity) for finding in host_findings(machine(), [disk])] == found


def test_the_worst_comes_first_and_the_rest_keeps_its_order() -> None:
    mixed = [Finding(str(n), severity, "", "") for n, severity in enumerate(("info", "warning", "fatal", "warning"))]  # type: ignore[arg-type]
    assert [finding.name for finding in in_order(mixed)] == ["2", "1", "3", "0"]
