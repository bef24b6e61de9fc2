"""From a candidate to the complete arguments of a launch: nothing that SGLang could default differently is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.rules.folding import algorithm_of
from spectune.engines.sglang.rules.names import ALGORITHM
from spectune.engines.sglang.rules.state import State
from spectune.engines.sglang.rules.table import BY_NAME

# SGLang chooses these by GPU size, by whether speculation is on, or by whether another flag was given at all;
# two candidates that leave them out may differ in more than what was searched (facts §2.7).
CUDA_DEFAULTS: Mapping[str, Any] = {
    "attention-backend": "triton",  # the one backend that takes MHA and MLA, chains and trees, on every CUDA GPU
    "page-size": 1,
    "chunked-prefill-size": 8192,
    "mem-fraction-static": 0.85,
}
SPECULATIVE_RUNNING_REQUESTS = 48  # what SGLang falls back to under speculation, and only then


def captured_batch_sizes(most: int) -> tuple[int, ...]:
    """Return the decode batch sizes SGLang captures under speculation, up to `most` requests (facts §3)."""
    sizes = [*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8), *range(272, most + 1, 16)]
    return tuple(sorted({size for size in sizes if size < most} | {most}))


def complete(values: Mapping[str, Any], fixed: Mapping[str, Any], *, cuda: bool, most_running: int) -> dict[str, Any]:
    """Return every argument of a launch, the ones nobody named included.

    Args:
        values: The candidate's arguments.
        fixed: Arguments that every launch shares.
        cuda: Whether CUDA's defaults and graphs apply.
        most_running: Requests the workload keeps running at its busiest level.
    """
    arguments = {**fixed, **values}
    algorithm = algorithm_of(arguments)
    if algorithm is None:
        arguments = {name: value for name, value in arguments.items() if not name.startswith("speculative-")}
    else:
        arguments[ALGORITHM] = algorithm
    arguments.setdefault("max-running-requests", max(SPECULATIVE_RUNNING_REQUESTS, most_running))
    if cuda:
        split = {"prefill-attention-backend", "decode-attention-backend"} <= arguments.keys()
        defaults = {name: v for name, v in CUDA_DEFAULTS.items() if not (split and name == "attention-backend")}
        arguments = {**defaults, **arguments}
        if not _names_graphs(arguments):
            arguments["cuda-graph-bs-decode"] = captured_batch_sizes(int(arguments["max-running-requests"]))
    return settled(arguments)


def settled(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the page size their attention backends run with, whatever was asked for."""
    rule = BY_NAME["page-snap"]
    state = State(arguments, model=Model.unknown(), searching=True)
    if rule.sets is None or not rule.when(state):
        return arguments
    return {**arguments, **rule.sets(state)}


def _names_graphs(arguments: Mapping[str, Any]) -> bool:
    switched_off = arguments.get("disable-decode-cuda-graph") or arguments.get("disable-cuda-graph")
    named = ("cuda-graph-bs-decode", "cuda-graph-max-bs-decode", "cuda-graph-config")
    return bool(switched_off) or any(name in arguments for name in named)


def to_argv(arguments: Mapping[str, Any]) -> list[str]:
    """Return arguments as words of a command line, the model first, the rest by name; False leaves a switch out."""
    argv: list[str] = []
    for name in sorted(arguments, key=lambda name: (name != "model-path", name)):
        value = arguments[name]
        if value is False or value is None:
            continue
        argv.append(f"--{name}")
        if isinstance(value, Sequence) and not isinstance(value, str):
            argv += [str(item) for item in value]
        elif value is not True:
            argv.append(str(value))
    return argv
