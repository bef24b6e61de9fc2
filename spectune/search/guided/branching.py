"""How broad a drafter's trees are and how well it ranks them, fitted to the trees that were launched."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectune.engines.draft_trees import Branching, tree_lengths

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

USUAL = Branching(0.3, 0.5)
"""Of the trees of ten EAGLE-3 drafters (SpecBundle, 64 tables): κ of nine lies between 0.3 and 0.55, of one at 1."""
BREADTH_SPREAD, CONFIDENCE_SPREAD = 0.6, 1.0  # of a logarithm; κ = 1 is no surprise
LOWEST, HIGHEST = np.log([0.03, 0.2]), np.log([1.2, 1.5])  # β and κ that are believed
ERROR = 0.03  # relative: how far the law is trusted
COARSEST, FINEST = 0.4, 0.01  # steps of a logarithm
ENOUGH = 4.0  # effective number of a point and its neighbours from which their steps are fine enough to sum over


def _around(reach: int) -> Floats:
    """Return the steps to all points of a square, its middle first."""
    steps = np.mgrid[-reach : reach + 1, -reach : reach + 1].reshape(2, -1).T
    found: Floats = steps[np.argsort(np.square(steps).sum(axis=1), kind="stable")].astype(np.float64)
    return found


NEIGHBOURS, SURROUNDINGS = _around(1), _around(2)


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


class Misfit:
    """How badly a β and a κ tell the trees that were launched, and how far they are from a guess."""

    def __init__(self, seen: Iterable[SeenTree], guess: Branching) -> None:
        """Take up the trees.

        Args:
            seen: Launched trees.
            guess: What was believed before.
        """
        self.guess = guess
        alike: dict[tuple[tuple[float, ...], int], list[SeenTree]] = {}
        for tree in seen:
            alike.setdefault((tree.conditionals, tree.topk), []).append(tree)
        self._groups = [_Alike.of(chain, topk, trees) for (chain, topk), trees in alike.items()]

    def __bool__(self) -> bool:
        """Whether any tree was launched."""
        return bool(self._groups)

    def __call__(self, branching: Branching) -> float:
        """Return the sum of squares: twice a negative log likelihood."""
        confidence = math.log(branching.confidence / self.guess.confidence) / CONFIDENCE_SPREAD
        breadth = math.log(branching.breadth / self.guess.breadth) / BREADTH_SPREAD
        return sum((group.misfit(branching) for group in self._groups), start=confidence**2 + breadth**2)


def fitted(seen: Iterable[SeenTree], guess: Branching) -> Branching:
    """Return the posterior mean of log β and log κ: what the trees seen say of them, a guess beside them.

    Not the likeliest pair: many a tree holds the same drafts for any κ from about 0.5 on, and where it is the only one
    seen, the likeliest κ is the guess, at the very edge of what is possible. A search that believed it took tight trees
    for poor, launched none, and so learned nothing of κ. The mean lies amid what the trees leave possible. Since the
    drafts of a tree change in leaps and β and κ make up for each other, the posterior has no slope to follow: it is
    climbed step by step, with steps that become smaller until it is no narrower than they are, and summed there.

    Args:
        seen: Launched trees; without any it stays with the guess.
        guess: What was believed before.
    """
    misfit = Misfit(seen, guess)
    if not misfit:
        return guess
    middle, step = np.log([guess.breadth, guess.confidence]), COARSEST
    while True:
        points, weights = _weighed(misfit, middle + step * NEIGHBOURS)
        best = int(np.argmax(weights))
        if best == 0:
            if step <= FINEST or 1.0 / np.square(weights).sum() >= ENOUGH:
                break
            step /= 2.0
        middle = points[best]
    points, weights = _weighed(misfit, middle + step * SURROUNDINGS)
    breadth, confidence = weights @ points
    return _at((breadth, min(0.0, confidence)))  # κ up to 1.5 is believed, lest the mean of what 1 tells be below 1


def table_size(tokens: int) -> int:
    """Return up to which N a table is computed: one serves all sizes up to the next 64."""
    return -(-tokens // 64) * 64


@dataclass(frozen=True)
class _Alike:
    """Trees of one chain and one K, which one table tells."""

    chain: tuple[float, ...]
    topk: int
    steps: Integers
    tokens: Integers
    lengths: Floats

    @classmethod
    def of(cls, chain: tuple[float, ...], topk: int, trees: Sequence[SeenTree]) -> _Alike:
        steps = np.minimum([tree.steps for tree in trees], len(chain))
        tokens, lengths = np.array([tree.tokens for tree in trees]), np.array([tree.length for tree in trees])
        return cls(chain, topk, steps, tokens, lengths)

    def misfit(self, branching: Branching) -> float:
        table = tree_lengths(self.chain, self.topk, branching, table_size(int(self.tokens.max())))
        return float(np.square(np.log(table[self.steps, self.tokens] / self.lengths) / ERROR).sum())


def _weighed(misfit: Misfit, points: Floats) -> tuple[Floats, Floats]:
    """Return those of the points that are believed at all, and their shares of the posterior."""
    points = points.round(6)  # so that one reached by two ways is one table
    points = points[((points >= LOWEST) & (points <= HIGHEST)).all(axis=1)]
    losses = np.array([misfit(_at(point)) for point in points])
    weights = np.exp((losses.min() - losses) / 2.0)
    return points, weights / weights.sum()


def _at(logarithms: Iterable[float]) -> Branching:
    """Return the β and κ of these logarithms."""
    breadth, confidence = map(math.exp, logarithms)
    return Branching(breadth, confidence)
