"""Sizes SGLang derives from the memory of a GPU (arg_groups/memory_hook.py, cuda_graph_hook.py)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.state import State

MIB_PER_GIB = 1024
# Memory below which a row applies, in GiB; chunk of prefill tokens; greatest captured batch below and from tp 4 on.
TIERS = ((20, 2048, 8, 8), (35, 4096, 48, 160), (60, 4096, 32, 160), (90, 8192, 256, 512), (160, 8192, 256, 512))
BEYOND = (16384, 512, 512)
LISTED = 2**20
"""Batch sizes, and tokens of a prefill graph, that are listed one by one; nobody captures more."""


def tier(state: State) -> tuple[int, int]:
    """Return the default prefill chunk and the greatest batch captured for decoding."""
    assert state.machine is not None
    rows = (row[1:] for row in TIERS if state.machine.memory_mib < row[0] * MIB_PER_GIB)
    chunk, small, large = next(rows, BEYOND)
    return chunk, small if state.number("tp-size") < 4 else large


def graph_settings(state: State) -> dict[str, dict[str, Any]]:
    """Return both phases' graph settings as given: JSON over per-phase flags over switches over defaults."""
    off = state.on("disable-cuda-graph")
    phases: dict[str, dict[str, Any]] = {}
    for phase, default in (("decode", "full"), ("prefill", "disabled" if state.cpu else "breakable")):
        disabled = off or state.on(f"disable-{phase}-cuda-graph")
        named = state.get(f"cuda-graph-backend-{phase}")
        phases[phase] = {
            "backend": named or ("disabled" if disabled else default),
            "max_bs": state.get(f"cuda-graph-max-bs-{phase}"),
            "bs": sizes_of(state.get(f"cuda-graph-bs-{phase}")),
            "locked": bool(named or disabled),
        }
    written = state.get("cuda-graph-config")
    config = json.loads(written) if isinstance(written, str) else written or {}
    for phase, settings in config.items():
        phases[phase].update(settings, locked="backend" in settings or phases[phase]["locked"])
    return {n.DECODE_GRAPH: phases["decode"], n.PREFILL_GRAPH: phases["prefill"]}


def readable_graph_settings(state: State) -> bool:
    """Whether `cuda-graph-config` is JSON with known phases."""
    written = state.get("cuda-graph-config")
    try:
        config = json.loads(written) if isinstance(written, str) else written or {}
    except ValueError:
        return False
    return isinstance(config, Mapping) and all(
        phase in {"decode", "prefill"} and isinstance(settings, Mapping) for phase, settings in config.items()
    )


def wrong_graph_value(state: State) -> str | None:
    """Say which setting of the graphs SGLang cannot calculate with, and fails without words of its own."""
    for phase, key in (("decode", n.DECODE_GRAPH), ("prefill", n.PREFILL_GRAPH)):
        most, sizes = state.values[key]["max_bs"], state.values[key]["bs"]
        where = f"cuda-graph-config[{phase}]"
        if most is not None and not isinstance(most, int) and not (state.cpu and phase == "decode"):
            return f"{where}.max_bs must be a whole number, but got {most!r}"
        numbers = isinstance(sizes, list) and (phase == "prefill" or all(isinstance(s, int | float) for s in sizes))
        if sizes is not None and not (numbers and (sizes or phase == "prefill")):
            return f"{where}.bs must be a list of numbers, but got {sizes!r}"
    return None


def sizes_of(value: Any) -> list[int] | None:
    """Return a list of batch sizes given as a list or as one number."""
    if value is None:
        return None
    return [int(size) for size in value] if isinstance(value, list | tuple) else [int(value)]


def decode_graph(state: State) -> dict[str, Any]:
    """Return the decode graphs with their sizes filled in."""
    graph = dict(state.values[n.DECODE_GRAPH])
    running = state.get(n.RUNNING)
    if graph["max_bs"] is None:
        graph["max_bs"] = tier(state)[1] if running is None else min(tier(state)[1], int(running))
    if state.cpu:
        return cpu_graph(state, graph)
    if graph["bs"] is None:
        graph["bs"] = captured(state, graph["max_bs"])
    else:
        graph["max_bs"] = max(graph["bs"])
    return graph


def captured(state: State, most: int) -> list[int]:
    """Return the batch sizes captured for decoding, up to `most` requests."""
    if state.on("disable-cuda-graph-padding"):
        return list(range(1, min(most, LISTED) + 1))
    return captured_batches(most, speculative=state.get(n.ALGORITHM) is not None)


def captured_batches(most: int, *, speculative: bool) -> list[int]:
    """Return the batch sizes SGLang captures of itself, ascending up to `most` requests, which is one of them."""
    listed = min(most, LISTED)
    if speculative:
        sizes = [*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8), *range(272, listed + 1, 16)]
    else:
        sizes = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 512, 16), *range(512, listed + 1, 32)]
    kept = [size for size in sizes if size <= most]
    return kept if most in kept else [*kept, most]


def cpu_graph(state: State, graph: dict[str, Any]) -> dict[str, Any]:
    """Return the graphs of a CPU, which are torch.compile's and bounded by its own option."""
    most = max(graph["bs"]) if graph["bs"] is not None else state.get("torch-compile-max-bs") or graph["max_bs"]
    if graph["bs"] is None:
        listed = min(most, LISTED)
        wide = [*range(1, 17), *range(18, 31, 2), *range(32, 81, 4), *range(84, listed + 1, 8), most]
        sizes = range(1, listed + 1) if state.on("disable-cuda-graph-padding") else sorted(set(wide))
        graph["bs"] = [size for size in sizes if size <= most]
    return {**graph, "max_bs": most}


def prefill_graph(state: State) -> dict[str, Any]:
    """Return the prefill graphs with their sizes, in tokens, filled in."""
    graph = dict(state.values[n.PREFILL_GRAPH])
    if graph["max_bs"] is None:
        chunk = int(state.values[n.CHUNK])
        most = min(8192, chunk) if state.model.mla else chunk
        graph["max_bs"] = min(most, int(state.get("max-total-tokens") or most))
    if graph["bs"] is None:
        most = graph["max_bs"]
        steps = [*range(4, 33, 4), *range(48, 257, 16), *range(288, 513, 32), *range(576, 1025, 64)]
        steps += [*range(1280, 4097, 256), *range(4608, min(most, LISTED) + 1, 512)]
        graph["bs"] = [size for size in steps if size <= most]
    return graph


def memory_fraction(state: State) -> float:
    """Return the share of memory for weights and KV cache that SGLang picks; no draft length enters it."""
    assert state.machine is not None
    total = state.machine.memory_mib
    decode, prefill = state.values[n.DECODE_GRAPH], state.values[n.PREFILL_GRAPH]
    chunk, attention_dp = int(state.values[n.CHUNK]), state.attention_groups
    deepep = state.get("moe-a2a-backend") == "deepep"
    reserved = 512 + 1.5 * max(chunk if chunk > 0 else state.number("max-prefill-tokens"), 2048)
    reserved += state.number("tp-size") * state.number("pp-size") / 8 * MIB_PER_GIB
    if decode["backend"] != "disabled":
        reserved += 2 * decode["max_bs"]
    if attention_dp > 1:
        reserved += decode["max_bs"] * attention_dp * (4.5 if decode["max_bs"] > 300 else 3)
    if prefill["backend"] != "disabled":
        reserved += 1.5 * MIB_PER_GIB if state.model.mla else 8 * len(prefill["bs"])
        reserved += MIB_PER_GIB if deepep and prefill["backend"] == "breakable" else 0
    if total > 60 * MIB_PER_GIB:
        reserved = max(reserved, 10 * MIB_PER_GIB)
    if deepep and decode["backend"] != "disabled":
        reserved += 2 * MIB_PER_GIB
    return round((total - reserved) / total, 3) * vision_factor(state)


def vision_factor(state: State) -> float:
    """Return what a vision encoder leaves of the share."""
    vision = state.model.config.get("vision_config")
    if (
        not (state.model.multimodal and isinstance(vision, Mapping))
        or state.on("language-only")
        or state.on("language-model-only")
    ):
        return 1.0
    layers, width = (
        value if isinstance(value := vision.get(key), int) else default
        for key, default in (("num_hidden_layers", 24), ("hidden_size", 1024))
    )
    size = min(layers * width**2, 2**63)  # the factor has its floor long before
    return 0.95 * max(0.8, min(1.05, 1.0 - 0.1 * (size / (24 * 1024**2) - 1.0)))
