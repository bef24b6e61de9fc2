"""Draft trees: how much breadth adds to a chain, by the law of MEASUREMENT.md (theory), as the drafter ranks it.

The simulated engine draws its trees by it, the guided search and the calibration fit it to measured ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Branching:
    """What the trees of a drafter are like.

    Attributes:
        breadth: β, which says how much more often one of several branches is right than the first alone.
        confidence: κ, how sure the drafter is of its ranking: 1 where it knows every chance, less where all branches
            look more alike to it than they are.
    """

    breadth: float
    confidence: float = 1.0


@lru_cache(maxsize=4096)
def tree_lengths(conditionals: tuple[float, ...], topk: int, branching: Branching, most_tokens: int) -> Floats:
    """Return τ of every tree of one drafter.

    m branches at a depth are right together with 1 − (1 − a)^(m^β). Which nodes are drafted and verified is up to the
    drafter's own probabilities: the K best nodes of a depth are expanded, and the N − 1 nodes with the largest path
    product are kept (EAGLE-2, arXiv 2406.16858). A drafter is trained on what its target might say, but is right where
    it says what the target says most likely; so it is less sure than right. Its probabilities are the true ones to the
    power κ, made to add up to 1 with all that is beyond the K branches. Then siblings drive out the end of the chain,
    and a tree of about S + 1 tokens is shorter than the chain, the more so the better the chain is.

    Args:
        conditionals: a_i of a chain, one per depth.
        topk: K.
        branching: β and κ.
        most_tokens: Largest N.

    Returns:
        Shape (depth + 1, most_tokens + 1): τ at [S, N]; N below 1 and S of 0 give 1.
    """
    lengths = np.ones((len(conditionals) + 1, most_tokens + 1))
    right, seeming = np.zeros(0), np.zeros(0)
    for depth, (products, product_ranks) in enumerate(_drafted(conditionals, topk, branching), start=1):
        right, seeming = np.concatenate([right, products]), np.concatenate([seeming, product_ranks])
        grown = 1.0 + np.cumsum(right[_best(seeming, most_tokens - 1)])
        lengths[depth, 2 : 2 + len(grown)] = grown
        lengths[depth, 2 + len(grown) :] = grown[-1]
    return lengths


@lru_cache(maxsize=4096)
def tree_survival(conditionals: tuple[float, ...], topk: int, branching: Branching, tokens: int) -> tuple[float, ...]:
    """Return P(at least d drafted tokens right), d = 1 … S, of the one tree of N tokens; its sum is τ − 1.

    Args:
        conditionals: a_i of a chain, one for each of the S depths.
        topk: K.
        branching: β and κ.
        tokens: N.
    """
    drafted = list(_drafted(conditionals, topk, branching))
    nothing = (np.zeros(0), np.zeros(0))  # what is drafted in no step
    right, seeming = (np.concatenate(parts) for parts in zip(nothing, *drafted, strict=True))
    depths = np.repeat(np.arange(len(drafted)), [len(products) for products, _ in drafted])
    kept = _best(seeming, tokens - 1)
    return tuple(np.bincount(depths[kept], weights=right[kept], minlength=len(drafted)).tolist())


def chain_lengths(conditionals: Sequence[float]) -> Floats:
    """Return τ of chains of 0, 1, 2 … drafted tokens: 1 + Σ_i Π_{j≤i} a_j."""
    return np.concatenate([[1.0], 1.0 + np.cumsum(np.cumprod(conditionals))])


def children(probability: float, topk: int, branching: Branching) -> tuple[Floats, Floats]:
    """Return P(the r-th ranked child is the right one), r = 1 … `topk`, and what the drafter takes it for."""
    missed = np.power(1.0 - probability, np.arange(topk + 1, dtype=np.float64) ** branching.breadth)
    right: Floats = missed[:-1] - missed[1:]
    if branching.confidence == 1.0:
        return right, right  # they add up already, and no rounding is to decide which nodes are kept
    tempered = right**branching.confidence
    return right, tempered / (tempered.sum() + missed[-1] ** branching.confidence)


def _drafted(conditionals: Sequence[float], topk: int, branching: Branching) -> Iterator[tuple[Floats, Floats]]:
    """Yield, depth by depth, the path products of the drafted nodes: as they are, and as the drafter sees them.

    The root has K children, and so has each of the K best nodes of every depth. Nodes of a depth stand in the order of
    their rank among their siblings.
    """
    right, seeming = np.ones(1), np.ones(1)
    for probability in conditionals:
        own, own_seeming = children(probability, topk, branching)
        products, product_ranks = np.outer(own, right).ravel(), np.outer(own_seeming, seeming).ravel()
        yield products, product_ranks
        expanded = _best(product_ranks, topk)
        right, seeming = products[expanded], product_ranks[expanded]


def _best(seeming: Floats, count: int) -> npt.NDArray[np.int64]:
    """Return which nodes seem best; of those that seem alike the first, which are the shallower ones."""
    return np.argsort(-seeming, kind="stable")[:count]
