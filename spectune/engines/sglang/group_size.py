"""How many GPUs of a machine a launch takes, against how many it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectune.counts import count
from spectune.engines.parts import Assignment, Illegal
from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.rules.sizes import gpus_each
from spectune.engines.sglang.rules.state import State

DECIDING = frozenset({"tp-size", "pp-size", "dp-size", "attn-dp-size", "enable-dp-attention", "nnodes"})


def decides(values: Assignment) -> bool:
    """Whether any of some values has a say in how many GPUs a launch takes."""
    return bool(DECIDING & values.keys())


def beyond_gpus(arguments: Mapping[str, Any], gpus: int) -> Illegal | None:
    """Return why a launch has too few GPUs, None where it has enough.

    Args:
        arguments: All that decides, the arguments that every launch shares among them.
        gpus: GPUs that a launch is shown (`engine.gpus`).
    """
    takes = gpus_each(State(dict(arguments), model=Model.unknown()))
    if takes <= gpus:
        return None
    return Illegal("gpus", f"it takes {count(takes, 'GPU')} of a machine, but a launch is shown {gpus} (engine.gpus)")
