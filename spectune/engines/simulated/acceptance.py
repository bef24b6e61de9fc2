"""How many drafted tokens are right: chains and trees of the profile page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from spectune.engines.simulated.profile_schema import AcceptanceTable
from spectune.engines.simulated.setup import Setup

MOST_LIKELY = 0.98
MIXED_CLASSES = ("code", "chat", "math")
"""The classes of `builtin:mixed`, a third each."""

KNOWN_CLASSES = (*MIXED_CLASSES, "random")


def position_probabilities(
    table: AcceptanceTable, drafter: str | None, prompt_class: str | None, context_tokens: float, depth: int
) -> tuple[float, ...]:
    """Return P(i-th drafted token right | all before it right) for i = 1 … `depth`.

    Args:
        table: The profile's.
        drafter: The drafter's path or name; one the table does not know has the default.
        prompt_class: Of the prompt; None and unknown ones have the factor 1.
        context_tokens: Tokens of the request so far.
        depth: Positions wanted.
    """
    listed = table.drafters.get(drafter, table.default) if drafter is not None else table.default
    factor = 1.0 if prompt_class is None else table.by_class.get(prompt_class, 1.0)
    if table.context_halving_ktokens > 0:
        factor *= 0.5 ** (context_tokens / 1000 / table.context_halving_ktokens)
    return tuple(min(MOST_LIKELY, listed[min(i, len(listed) - 1)] * factor) for i in range(depth))


def unknown_names(table: AcceptanceTable, drafter: str | None, prompt_class: str | None) -> list[str]:
    """Return a warning for each name the profile does not know."""
    warnings = []
    if drafter is not None and drafter not in table.drafters:
        known = ", ".join(table.drafters) or "none by name"
        warnings.append(f"the profile does not know the drafter '{drafter}' and takes its default; known: {known}")
    if prompt_class is not None and prompt_class not in {*table.by_class, *KNOWN_CLASSES}:
        warnings.append(f"the profile does not know the prompt class '{prompt_class}' and takes the factor 1.0")
    return warnings


def survival(setup: Setup, probabilities: Sequence[float], breadth: float) -> tuple[float, ...]:
    """Return P(at least d drafted tokens right in one cycle) for d = 1 … depth.

    Args:
        setup: The launch, for S, K and N.
        probabilities: As `position_probabilities` gives them, one per depth.
        breadth: β of the profile.
    """
    kept = setup.num_draft_tokens - 1
    return _survival(tuple(probabilities), setup.eagle_topk, kept, breadth)


def accept_length(survivals: Sequence[float]) -> float:
    """Return τ, the mean tokens per cycle, bonus token included."""
    return 1.0 + sum(survivals)


def ranked(probability: float, topk: int, breadth: float) -> npt.NDArray[np.float64]:
    """Return P(the r-th ranked child is the right one) for r = 1 … `topk`; the first has `probability`."""
    missed = (1.0 - probability) ** (np.arange(topk + 1, dtype=np.float64) ** breadth)
    children: npt.NDArray[np.float64] = missed[:-1] - missed[1:]
    return children


@lru_cache(maxsize=4096)
def _survival(probabilities: tuple[float, ...], topk: int, kept: int, breadth: float) -> tuple[float, ...]:
    if topk == 1:
        chain = np.cumprod(probabilities[:kept]).tolist()
        return (*chain, *[0.0] * (len(probabilities) - len(chain)))
    nodes = _grown(probabilities, topk, breadth)
    products, depths, ranks = (np.concatenate(parts) for parts in nodes)
    best = np.lexsort((ranks, depths, -products))[:kept]
    return tuple(np.bincount(depths[best] - 1, weights=products[best], minlength=len(probabilities)).tolist())


def _grown(
    probabilities: tuple[float, ...], topk: int, breadth: float
) -> tuple[list[npt.NDArray[np.float64]], list[npt.NDArray[np.int64]], list[npt.NDArray[np.int64]]]:
    """Return path products, depths and ranks of all drafted nodes: K of the root, then K of each of the K best."""
    products, depths, ranks = [], [], []
    rank = np.arange(1, topk + 1)
    parents = np.ones(1)
    for depth, probability in enumerate(probabilities, start=1):
        children = np.outer(parents, ranked(probability, topk, breadth)).ravel()
        child_ranks = np.tile(rank, len(parents))
        products.append(children)
        depths.append(np.full(len(children), depth))
        ranks.append(child_ranks)
        parents = children[np.lexsort((child_ranks, -children))[:topk]]
    return products, depths, ranks
