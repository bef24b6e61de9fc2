"""A healthy machine with eight GPUs, to change one thing at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spectune.machine import Disk, Fingerprint, Gpu, Gpus, take_fingerprint

MACHINE = take_fingerprint("SGLang 0.5.23", packages={"sglang": "0.5.23", "torch": "2.9.1"})
ROOMY = Disk("studies", "/data", 500.0, 1000.0, writable=True)


def gpu(index: int = 0, **changes: Any) -> Gpu:
    whole: dict[str, Any] = {
        "uuid": f"GPU-{index:08d}", "name": "NVIDIA H200", "memory_total_mib": 143_771, "memory_used_mib": 4,
        "sm_mhz": 345, "max_sm_mhz": 1980, "application_sm_mhz": 1980, "power_limit_w": 700.0,
        "default_power_limit_w": 700.0, "temperature_c": 30, "throttle": ("gpu_idle",), "persistence": True,
        "mig": False,        "pcie_gen": 5, "max_pcie_gen": 5, "pcie_width": 16, "max_pcie_width": 16, "processes": (),
        "throttled_ms": {"power": 0, "thermal": 0},
    }  # fmt: skip
    return Gpu(index, **(whole | changes))


def gpus(*changed: Gpu, count: int = 8) -> Gpus:
    by_index = {one.index: one for one in changed}
    devices = tuple(by_index.get(index, gpu(index)) for index in range(count))
    return Gpus(devices, "570.124.06", "12.8", None, count)


def machine(*changed: Gpu, host: dict[str, Any] | None = None, software: dict[str, Any] | None = None) -> Fingerprint:
    healthy = {
        "governor": "performance", "swap_used_gib": 0.0, "open_files": 1 << 20, "cgroup_cores": None, "cores": 64,
        "bound_to": "0-63", "boot_id": "one", "ephemeral_ports": (32768, 60999),
    }  # fmt: skip
    clean: dict[str, Any] = {
        "variables": {}, "nccl_files": (), "sitecustomize": None, "engine_sitecustomize": None,
        "tools": dict.fromkeys(("cc", "g++", "ninja", "nvcc"), "/usr/bin/it"),
    }  # fmt: skip
    return replace(
        MACHINE,
        gpus=gpus(*changed),
        host=replace(MACHINE.host, **(healthy | (host or {}))),
        software=replace(MACHINE.software, **(clean | (software or {}))),
    )
