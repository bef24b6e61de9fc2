"""The first launch of every algorithm and drafter: a chain, since a chain tells of every shorter one too."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from spectune.space import ALGORITHM, DRAFTER, EAGLE_TOPK, NUM_STEPS, Candidate, SearchSpace, Value

OPENING_STEPS = 5  # SGLang's own default for most models; a chain of it also predicts every shorter one


def opening_assignments(space: SearchSpace, beside: Candidate | None = None) -> Iterator[dict[str, Any]]:
    """Yield the chain whose length is nearest SGLang's default, for each algorithm and drafter; not all are legal.

    Args:
        space: What is searched.
        beside: A candidate whose other settings they have; the first of each without one.
    """
    parameters = space.parameters
    if ALGORITHM not in parameters:
        return
    first: dict[str, Any] = {name: p.values[0] for name, p in parameters.items()}
    first |= {} if beside is None else beside.values
    for name, wanted in ((NUM_STEPS, OPENING_STEPS), (EAGLE_TOPK, 1)):
        if name in parameters:
            first[name] = min(parameters[name].values, key=lambda value: abs(int(str(value)) - wanted))
    drafters: Sequence[Value | None] = parameters[DRAFTER].values if DRAFTER in parameters else (None,)
    for algorithm, drafter in itertools.product(space.algorithms, drafters):
        yield {**first, ALGORITHM: algorithm} | ({} if drafter is None else {DRAFTER: drafter})
