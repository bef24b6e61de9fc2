"""Draft trees: how much breadth adds to a chain, by the law of MEASUREMENT.md (theory)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@lru_cache(maxsize=2048)
def tree_lengths(conditionals: tuple[float, ...], topk: int, breadth: float, most_tokens: int) -> Floats:
    """Return τ of every tree of one drafter and breadth.

    m branches at a depth are right together with 1 − (1 − a)^(m^β); the K best nodes of a depth are expanded, and the
    N − 1 nodes with the largest path product are verified (EAGLE-2, arXiv 2406.16858).

    Args:
        conditionals: a_i of a chain, one per depth.
        topk: K.
        breadth: β.
        most_tokens: Largest N.

    Returns:
        Shape (depth + 1, most_tokens + 1): τ at [S, N]; N below 1 and S of 0 give 1.
    """
    lengths = np.ones((len(conditionals) + 1, most_tokens + 1))
    products: list[Floats] = []
    parents: Floats = np.ones(1, np.float64)
    for depth, probability in enumerate(conditionals, start=1):
        nodes: Floats = np.outer(parents, _ranked(probability, topk, breadth)).ravel()
        products.append(nodes)
        parents = np.sort(nodes)[::-1][:topk]
        kept = np.sort(np.concatenate(products))[::-1][: most_tokens - 1]
        grown = 1.0 + np.cumsum(kept)
        lengths[depth, 2 : 2 + len(grown)] = grown
        lengths[depth, 2 + len(grown) :] = grown[-1]
    return lengths


def chain_lengths(conditionals: Sequence[float]) -> Floats:
    """Return τ of chains of 0, 1, 2 … drafted tokens: 1 + Σ_i Π_{j≤i} a_j."""
    return np.concatenate([[1.0], 1.0 + np.cumsum(np.cumprod(conditionals))])


def _ranked(probability: float, topk: int, breadth: float) -> Floats:
    """Return P(the r-th ranked child is the right one), r = 1 … `topk`."""
    missed = np.power(1.0 - probability, np.arange(topk + 1, dtype=np.float64) ** breadth)
    children: Floats = missed[:-1] - missed[1:]
    return children
