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


def beyond_gpus(fixed: Mapping[str, Any], values: Assignment, gpus: int) -> Illegal | None:
    """Return why a launch has too few GPUs, None where it has enough.

    Args:
        fixed: Arguments that every launch shares.
        values: What a candidate adds; where none of that decides, `fixed` alone has been judged before.
        gpus: GPUs that a launch is shown (`engine.gpus`).
    """
    if values and not DECIDING & values.keys():
        return None
    takes = gpus_each(State({**fixed, **values}, model=Model.unknown()))
    if takes <= gpus:
        return None
    return Illegal("gpus", f"it takes {count(takes, 'GPU')} of a machine, but a launch is shown {gpus} (engine.gpus)")
