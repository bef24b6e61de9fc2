"""A fingerprint in a few lines, for people: in `spectune doctor` and in reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spectune.machine.fingerprint import SCHEMA
from spectune.machine.gpus import IDLE
from spectune.typed_json import mapping_of, objects_of


def overview(environment: Mapping[str, Any], *, gpus: bool = True) -> list[tuple[str, str]]:
    """Return label and text of each line.

    Args:
        environment: `Fingerprint.to_json()`, or the content of an `environment.json` of any schema; what is not in
            it is left out.
        gpus: Whether its GPUs are of interest.
    """
    if environment.get("schema") != SCHEMA:
        return [
            (name.replace("_", " "), _plain(value))
            for name, value in environment.items()
            if name not in {"schema", "boot_id"}
        ]
    parts = (_software, _gpus, _host) if gpus else (_software, _host)
    return [(label, text) for part in parts for label, text in part(environment) if text]


def _software(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    software = mapping_of(environment.get("software"))
    yield "engine", _plain(software.get("engine"))
    yield "its packages", _plain(software.get("packages"))
    yield "spectune", _joined(software, "{spectune}", " on Python {python}")
    yield "libraries", _plain(software.get("libraries"))
    yield "variables", _plain(software.get("variables"))
    files = objects_of(software.get("nccl_files"))
    yield "NCCL files", ", ".join(f"{file.get('path')} ({_plain(file.get('variables'))})" for file in files)
    yield "sitecustomize", _plain(software.get("engine_sitecustomize") or software.get("sitecustomize"))


def _gpus(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    gpus = mapping_of(environment.get("gpus"))
    if gpus.get("problem"):
        yield "GPUs", str(gpus["problem"])
        return
    yield "driver", _joined(gpus, "{driver}", ", CUDA up to {cuda}")
    alike: dict[str, list[str]] = {}
    for gpu in objects_of(gpus.get("devices")):
        alike.setdefault(_gpu(gpu), []).append(str(gpu.get("index")))
    for text, numbers in alike.items():
        yield f"GPU {', '.join(numbers)}", text


def _gpu(gpu: Mapping[str, Any]) -> str:
    if gpu.get("problem"):
        return str(gpu["problem"])
    facts = [
        str(gpu.get("name") or "unknown"),
        _joined(gpu, "{memory_total_mib} MiB"),
        _joined(gpu, "{max_sm_mhz} MHz at most"),
        _joined(gpu, "{power_limit_w:g} W", " of {default_power_limit_w:g} W"),
        _joined(gpu, "PCIe {max_pcie_gen}.0", " × {pcie_width}"),
        _joined(gpu, "NUMA node {numa_node}"),
        "held back: " + ", ".join(held) if (held := sorted(set(gpu.get("throttle") or ()) - {IDLE})) else "",
    ]
    facts += [name for name, on in (("MIG", gpu.get("mig")), ("no ECC", gpu.get("ecc") is False)) if on]
    return ", ".join(filter(None, facts))


def _host(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    host = mapping_of(environment.get("host"))
    yield "processor", _joined(host, "{cpu}", ", {cores} cores", " ({bound_to})", ", quota of {cgroup_cores:g}")
    yield "NUMA", _joined(host, "nodes: {numa_nodes}", ", bound to {bound_nodes}")
    yield "governor", _joined(host, "{governor}", ", {max_mhz} MHz at most")
    yield "memory", _joined(host, "{memory_gib:g} GiB", ", limit {memory_limit_gib:g} GiB", ", huge pages {huge_pages}")
    yield "kernel", _joined(host, "{kernel}", " on {architecture}")
    yield "container", _joined(host, "{container}", " {container_id}")


def _joined(facts: Mapping[str, Any], *templates: str) -> str:
    """Return the templates one after the other, without those whose facts are unknown."""
    known = {name: value for name, value in facts.items() if value is not None}
    text = ""
    for template in templates:
        try:
            text += template.format_map(known)
        except (KeyError, ValueError, TypeError):
            continue
    return text


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {inner}" for name, inner in value.items() if inner is not None)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
