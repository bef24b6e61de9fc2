"""From a candidate to the complete arguments of a launch: nothing that SGLang could default differently is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.memory import captured_batches
from spectune.engines.sglang.rules.state import State
from spectune.engines.sglang.rules.table import BY_NAME
from spectune.space import is_speculative

LAUNCHER = ("-m", "sglang.launch_server")
"""What an interpreter is told to run."""

# SGLang chooses these by GPU size, by whether speculation is on, or by whether another flag was given at all;
# two candidates that leave them out may differ in more than what was searched (facts §2.7).
CUDA_DEFAULTS: Mapping[str, Any] = {
    n.ATTENTION: "triton",  # the one backend that takes MHA and MLA, chains and trees, on every CUDA GPU
    n.PAGE: 1,
    n.CHUNK: 8192,
    n.MEMORY: 0.85,
}
GRAPH_SIZES_NAMED = frozenset({n.GRAPH_SIZES, n.GRAPH_MOST, "cuda-graph-config"})
SPECULATIVE_RUNNING_REQUESTS = 48  # what SGLang falls back to under speculation, and only then


@dataclass(frozen=True)
class CompleteLaunch:
    """What a launch is given, under SGLang 0.5.23's names.

    Attributes:
        arguments: All of them, without dashes; host and port aside.
        env: Variables to set.
        unset: Variables that must be absent.
    """

    arguments: Mapping[str, Any]
    env: Mapping[str, str]
    unset: tuple[str, ...]


def complete(values: Mapping[str, Any], fixed: Mapping[str, Any], *, cuda: bool, most_running: int) -> dict[str, Any]:
    """Return every argument of a launch, the ones nobody named included.

    Args:
        values: The candidate's arguments.
        fixed: Arguments that every launch shares.
        cuda: Whether CUDA's defaults and graphs apply.
        most_running: Requests the workload keeps running at its busiest level.
    """
    arguments = {**fixed, **values}
    algorithm = n.algorithm_of(arguments)
    if algorithm is None:
        arguments = {name: value for name, value in arguments.items() if not is_speculative(name)}
    else:
        arguments[n.ALGORITHM] = algorithm
    arguments.setdefault(n.RUNNING, max(SPECULATIVE_RUNNING_REQUESTS, most_running))
    if cuda:
        split = {n.PREFILL_ATTENTION, n.DECODE_ATTENTION} <= arguments.keys()
        defaults = {name: v for name, v in CUDA_DEFAULTS.items() if not (split and name == n.ATTENTION)}
        arguments = {**defaults, **arguments}
        if not (n.decode_graphs_off(arguments) or GRAPH_SIZES_NAMED & arguments.keys()):
            arguments[n.GRAPH_SIZES] = tuple(captured_batches(int(arguments[n.RUNNING]), speculative=True))
    return settled(arguments)


def settled(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with the page size their attention backends run with, whatever was asked for."""
    rule = BY_NAME["page-snap"]
    state = State(arguments, model=Model.unknown(), searching=True)
    if rule.sets is None or not rule.when(state):
        return arguments
    return {**arguments, **rule.sets(state)}


def to_argv(arguments: Mapping[str, Any]) -> list[str]:
    """Return arguments as words of a command line, the model first, the rest by name; False leaves a switch out."""
    argv: list[str] = []
    for name in sorted(arguments, key=lambda name: (name != n.MODEL, name)):
        value = arguments[name]
        if value is False or value is None:
            continue
        argv.append(f"--{name}")
        if isinstance(value, Sequence) and not isinstance(value, str):
            argv += [str(item) for item in value]
        elif value is not True:
            argv.append(str(value))
    return argv
