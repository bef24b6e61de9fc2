"""How two fingerprints differ, and whether it can change what is measured. Pure functions of their JSON forms."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spectune.machine.gpus import IDLE, POWER_CAP, SLOWDOWNS
from spectune.typed_json import mapping_of, objects_of

Flat = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it was.

    Attributes:
        field: Path in the fingerprint, GPUs by their UUID.
        before: Its value then, in JSON.
        after: Its value now.
        matters: Whether measurements before and after may not be compared without a new baseline.
        why: What it does to a measurement; empty where nothing is known.
    """

    field: str
    before: Any
    after: Any
    matters: bool
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in `result.json`."""
        return asdict(self)

    def __str__(self) -> str:
        reason = f" ({self.why})" if self.why else ""
        return f"{self.field}: {_said(self.before)} → {_said(self.after)}{reason}"


# What always varies, or is compared in a way of its own below.
_VARIES = re.compile(
    r"schema|taken_at|engine|gpus\.problem|gpus\.in_kernel|host\.(available_gib|swap_used_gib)"
    r"|gpus\.devices\.[^.]+\.(index|uuid|memory_used_mib|sm_mhz|memory_mhz|power_w|temperature_c|throttle|pcie_gen"
    r"|pcie_width|processes|throttled_ms\..*|unread\..*)"
)
# Pattern of a path → what a change there does to a measurement.
_MATTERS: Sequence[tuple[str, str]] = (
    (r"gpus\.driver|gpus\.cuda", "another driver has other kernels and other speed"),
    (r"gpus\..*\.problem", "the GPU is of no use"),
    (r"gpus\..*\.(default_)?power_limit_w", "clocks under load follow the power limit"),
    (r"gpus\..*\.(max|application)_(sm|memory)_mhz", "the highest clock decides the speed"),
    (r"gpus\..*\.(max_pcie_(gen|width)|nvlink)", "collectives cross this link"),
    (r"gpus\..*\.(mig|ecc|numa_node|name|memory_total_mib)", "it is another GPU, or set up as another"),
    (r"host\.(governor|max_mhz)", "the engine's host code runs at another clock"),
    (r"host\.(bound_to|bound_nodes|cores|cgroup_cores)", "the engine runs on other cores, or further from the GPUs"),
    (r"host\.boot_id", "the machine was booted in between, or is another one"),
    (r"host\.(kernel|cpu|architecture|numa_nodes|memory_limit_gib|huge_pages)", "the machine is another, or set up so"),
    (r"software\.nccl_files\..*", "NCCL reads this file on its own, whatever a launch says"),
    (r"software\.(engine_)?sitecustomize", "it runs at every start of the interpreter and can change anything"),
    (r"software\.variables\..*", "launches inherit it"),
    (r"software\.engine|software\.packages\..*", "another version of the engine or its libraries"),
)  # fmt: skip
THROTTLED_MS = 100  # less is not worth a word
_SLOWER = "the clocks were held back while measuring"


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Compare two fingerprints; what matters comes first.

    What one of them does not know (None, or not asked) is no difference, nor is what always varies: temperatures,
    memory in use, clocks of the moment. Link speed and throttling count only when they
    got worse, and link speed not on an idle GPU.

    Args:
        before: `Fingerprint.to_json()`, or what was read back from `environment.json`; another schema gives none.
        after: The same at a later moment.
    """
    if before.get("schema") != after.get("schema"):
        return []
    was, now = dict(_flat(_by_name(before))), dict(_flat(_by_name(after)))
    found = [_judged(name, was.get(name), now.get(name)) for name in (was | now) if _changed(name, was, now)]
    gpus_was, gpus_now = _devices(before), _devices(after)
    found += [
        Difference(f"gpus.devices.{key}", "there", "gone", matters=True, why="a GPU is missing")
        for key in gpus_was.keys() - gpus_now.keys()
    ]
    found += [
        Difference(f"gpus.devices.{key}", "not there", "there", matters=False, why="a GPU more")
        for key in gpus_now.keys() - gpus_was.keys()
    ]
    for key in gpus_was.keys() & gpus_now.keys():
        found += [*_links(key, gpus_was[key], gpus_now[key]), *_throttle(key, gpus_was[key], gpus_now[key])]
        found += _strangers(key, gpus_was[key], gpus_now[key])
    return sorted(found, key=lambda one: (not one.matters, one.field))


def without_gpus(fingerprint: Mapping[str, Any], keys: Collection[str]) -> Mapping[str, Any]:
    """Return a fingerprint that tells nothing of some of its GPUs: those that somebody else's launches are on.

    Args:
        fingerprint: `Fingerprint.to_json()`, or what was read back from `environment.json`.
        keys: What the GPUs are known by (`Gpu.key`).
    """
    if not keys:
        return fingerprint
    kept = [gpu for key, gpu in _devices(fingerprint).items() if key not in keys]
    return {**fingerprint, "gpus": {**mapping_of(fingerprint.get("gpus")), "devices": kept}}


def throttling(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Return for how long each GPU's clocks were held back between two fingerprints, from the driver's counters.

    Args:
        before: Fingerprint at the beginning of a launch.
        after: Fingerprint at its end.
    """
    found = []
    was = _devices(before)
    for key, gpu in _devices(after).items():
        counted = was.get(key, {}).get("throttled_ms") or {}
        for limit, total in (gpu.get("throttled_ms") or {}).items():
            begin = counted.get(limit)
            if begin is not None and total - begin >= THROTTLED_MS:
                usual = limit == "power" and not _limited(gpu)
                why = "at its full power limit, as usual under load" if usual else _SLOWER
                field = f"gpus.devices.{key}.throttled_ms.{limit}"
                found.append(Difference(field, begin, total, matters=not usual, why=why))
    return found


def _judged(name: str, before: Any, after: Any) -> Difference:
    why = next((why for pattern, why in _MATTERS if re.fullmatch(pattern, name)), None)
    return Difference(name, before, after, matters=why is not None, why=why or "")


def _changed(name: str, was: Flat, now: Flat) -> bool:
    if _VARIES.fullmatch(name) or was.get(name) == now.get(name):
        return False
    appears = _APPEARS.fullmatch(name) is not None
    if name.startswith("gpus.devices."):
        key = name.split(".")[2]
        appears = name.endswith(".problem") and all(f"gpus.devices.{key}.index" in side for side in (was, now))
    return appears or (was.get(name) is not None and now.get(name) is not None)


# Paths where being there or not is itself the fact.
_APPEARS = re.compile(r"software\.(nccl_files|variables)\..*|software\.sitecustomize")


def _links(key: str, was: Flat, now: Flat) -> Iterator[Difference]:
    for name in ("pcie_gen", "pcie_width"):
        before, after = was.get(name), now.get(name)
        resting = name == "pcie_gen" and IDLE in (now.get("throttle") or ())  # an idle link slows down to save power
        if before is not None and after is not None and after < before and not resting:
            why = "the PCIe link is slower than it was, and collectives cross it"
            yield Difference(f"gpus.devices.{key}.{name}", before, after, matters=True, why=why)


def _throttle(key: str, was: Flat, now: Flat) -> Iterator[Difference]:
    before, after = set(was.get("throttle") or ()), set(now.get("throttle") or ())
    new = after - before
    slowdown = bool(new & SLOWDOWNS) or (POWER_CAP in new and _limited(now))
    if slowdown or POWER_CAP in new:
        why = _SLOWER if slowdown else "at its full power limit, as usual under load"
        field = f"gpus.devices.{key}.throttle"
        yield Difference(field, sorted(before), sorted(after), matters=slowdown, why=why)


def _strangers(key: str, was: Flat, now: Flat) -> Iterator[Difference]:
    before = {process["pid"] for process in was.get("processes") or ()}
    for process in now.get("processes") or ():
        if process["pid"] not in before:
            yield Difference(
                f"gpus.devices.{key}.processes", None, process, matters=True, why="another process uses the GPU"
            )


def _limited(gpu: Flat) -> bool:
    limit, default = gpu.get("power_limit_w"), gpu.get("default_power_limit_w")
    return limit is not None and default is not None and limit < default


def _devices(fingerprint: Mapping[str, Any]) -> dict[str, Flat]:
    devices = objects_of(mapping_of(fingerprint.get("gpus")).get("devices"))
    return {str(gpu.get("uuid") or gpu.get("index")): gpu for gpu in devices}


def _by_name(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the lists of GPUs and files into mappings, so that order does not count."""
    gpus, software = mapping_of(fingerprint.get("gpus")), mapping_of(fingerprint.get("software"))
    entries = objects_of(software.get("nccl_files"))
    files = {str(entry.get("path")): {"digest": entry.get("digest")} for entry in entries}
    return {
        **fingerprint,
        "gpus": {**gpus, "devices": _devices(fingerprint)},
        "software": {**software, "nccl_files": files},
    }


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", list(inner) if isinstance(inner, tuple) else inner


def _said(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return f"{value.get('name') or 'a process'} (pid {value.get('pid')})"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
