"""How broad a drafter's trees are and how well it ranks them, fitted to the trees that were launched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectune.search.guided.trees import Branching, tree_lengths

Floats = npt.NDArray[np.float64]

USUAL = Branching(0.3, 0.5)
"""Of the trees of ten EAGLE-3 drafters (SpecBundle, 64 tables): κ of nine lies between 0.3 and 0.55, of one at 1."""
BREADTH_SPREAD, CONFIDENCE_SPREAD = 0.6, 1.0  # of a logarithm; κ = 1 is no surprise
BREADTHS = np.exp(np.linspace(np.log(0.03), np.log(1.2), 9))
CONFIDENCES = np.exp(np.linspace(np.log(0.2), 0.0, 6))
ERROR = 0.03  # relative: how far the law is trusted


@dataclass(frozen=True)
class SeenTree:
    """A tree that was launched.

    Attributes:
        conditionals: a_i of its drafter's chain.
        steps: Drafted depths.
        topk: K.
        tokens: N.
        length: Accept length.
    """

    conditionals: tuple[float, ...]
    steps: int
    topk: int
    tokens: int
    length: float


def fitted(seen: Iterable[SeenTree], guess: Branching, confidences: Floats = CONFIDENCES) -> Branching:
    """Return β and κ under which the trees seen are most likely, a guess beside them.

    Args:
        seen: Launched trees; without any it stays with the guess.
        guess: What was believed before.
        confidences: Values of κ that are tried, evenly spaced in their logarithm.
    """
    alike: dict[tuple[tuple[float, ...], int], list[SeenTree]] = {}
    for tree in seen:
        alike.setdefault((tree.conditionals, tree.topk), []).append(tree)
    if not alike:
        return guess
    off = np.square(np.log(confidences / guess.confidence) / CONFIDENCE_SPREAD)
    losses = off[:, None] + np.square(np.log(BREADTHS / guess.breadth) / BREADTH_SPREAD)
    for (chain, topk), trees in alike.items():
        steps, tokens = np.minimum([t.steps for t in trees], len(chain)), np.array([t.tokens for t in trees])
        lengths, size = np.array([t.length for t in trees]), table_size(int(tokens.max()))
        for at in np.ndindex(losses.shape):
            branching = Branching(float(BREADTHS[at[1]]), float(confidences[at[0]]))
            expected = tree_lengths(chain, topk, branching, size)[steps, tokens]
            losses[at] += np.square(np.log(expected / lengths) / ERROR).sum()
    row = int(np.argmin(losses.min(axis=1)))
    breadth, confidence = _least(BREADTHS, losses[row]), _least(confidences, losses.min(axis=1))
    return Branching(breadth, confidence)


def table_size(tokens: int) -> int:
    """Return up to which N a table is computed: one serves all sizes up to the next 64."""
    return -(-tokens // 64) * 64


def _least(values: Floats, losses: Floats) -> float:
    """Return where a parabola through the least loss and its neighbours is least, over evenly spaced logarithms."""
    at, best = np.log(values), int(np.argmin(losses))
    if best in {0, len(at) - 1}:
        return float(values[best])
    left, middle, right = losses[best - 1 : best + 2]
    return float(np.exp(at[best] + 0.5 * (left - right) / (left - 2 * middle + right) * (at[1] - at[0])))
