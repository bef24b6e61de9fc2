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
BREADTHS = np.exp(np.linspace(np.log(0.03), np.log(1.2), 9))
CONFIDENCES = np.exp(np.linspace(np.log(0.2), 0.0, 6))
ERROR = 0.03  # relative: how far the law is trusted
COARSEST, FINEST = 0.4, 0.01  # steps of a logarithm


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
    """Return β and κ under which the trees seen are most likely, a guess beside them.

    Args:
        seen: Launched trees; without any it stays with the guess.
        guess: What was believed before.
    """
    misfit = Misfit(seen, guess)
    if not misfit:
        return guess
    losses = np.array([[misfit(Branching(float(b), float(k))) for b in BREADTHS] for k in CONFIDENCES])
    row = int(np.argmin(losses.min(axis=1)))
    breadth, confidence = _least(BREADTHS, losses[row]), _least(CONFIDENCES, losses.min(axis=1))
    return Branching(breadth, confidence)


def refined(seen: Iterable[SeenTree], guess: Branching) -> Branching:
    """Return what `fitted` returns, to about 1 %: step by step from the guess, with steps that become smaller.

    β and κ make up for each other, so their best is at the bottom of a valley that a parabola for each may miss.
    """
    misfit = Misfit(seen, guess)
    best, step = guess, COARSEST
    while step > FINEST:
        near = [_moved(best, across * step, along * step) for across in (0, -1, 1) for along in (0, -1, 1)]
        nearest = min(near, key=misfit)
        if nearest == best:
            step /= 2.0
        best = nearest
    return best


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


def _moved(branching: Branching, across: float, along: float) -> Branching:
    """Return a β and κ that differ by steps of their logarithms, within what is tried at all."""
    breadth = np.clip(branching.breadth * math.exp(across), BREADTHS[0], BREADTHS[-1])
    confidence = np.clip(branching.confidence * math.exp(along), CONFIDENCES[0], CONFIDENCES[-1])
    return Branching(float(breadth), float(confidence))


def _least(values: Floats, losses: Floats) -> float:
    """Return where a parabola through the least loss and its neighbours is least, over evenly spaced logarithms."""
    at, best = np.log(values), int(np.argmin(losses))
    if best in {0, len(at) - 1}:
        return float(values[best])
    left, middle, right = losses[best - 1 : best + 2]
    return float(np.exp(at[best] + 0.5 * (left - right) / (left - 2 * middle + right) * (at[1] - at[0])))
