"""Which loads run outside CUDA graphs by what is asked for, and the graph settings under which the fewest do."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from spectune.search.evidence.setting import GRAPH_LIMIT, GRAPH_SIZES, GRAPHS_OFF, Setting
from spectune.space import SearchSpace

GRAPHS = frozenset({*GRAPHS_OFF, GRAPH_SIZES, GRAPH_LIMIT})


def outside_graphs(values: Mapping[str, Any], space: SearchSpace) -> tuple[str, ...]:
    """Return the levels at which more requests run at once than the largest graph holds, by name; none on a CPU.

    An open loop has no batch of its own, so nothing is said of it.

    Args:
        values: Of a candidate.
        space: Its search space.
    """
    values = {**space.engine.args, **values}
    if space.engine.runtime is not None or values.get("device") == "cpu":
        return ()
    setting = Setting.of(values)
    batches = {one.name: setting.batch(one.concurrency) for one in space.workload.levels if one.concurrency is not None}
    return tuple(level for level, batch in batches.items() if setting.padded(batch) is None)


def best_covered(values: Mapping[str, Any], space: SearchSpace) -> list[dict[str, Any]]:
    """Return the values with every graph setting of the space, those with the fewest levels outside graphs first.

    No other setting changes a speed as much. Among equals the values as they are come first, then the file's order.
    """
    varied = [parameter for parameter in space.system_parameters if parameter.name in GRAPHS]
    choices = itertools.product(*(parameter.values for parameter in varied))
    names = [parameter.name for parameter in varied]
    every = [dict(values), *({**values, **dict(zip(names, choice, strict=True))} for choice in choices)]
    return sorted(every, key=lambda one: len(outside_graphs(one, space)))
