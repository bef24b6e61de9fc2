"""What the process on the residuals is made of: how alike assignments are, and how large effects usually are."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spectune.search.guided.encoding import Axis, Codes

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spreads:
    """Prior standard deviations of logarithms: of a parameter's effect, a pair's, all draft parameters', the mean."""

    single: float = 0.03
    pair: float = 0.02
    draft: float = 0.03
    draft_single: float = 0.03
    mean: float = 0.3
    noise: float = 0.015


@dataclass(frozen=True)
class Components:
    """The kernel's components between assignments.

    Attributes:
        axes: Parameters, those of the draft first.
        drafts: How many of them belong to the draft.
    """

    axes: tuple[Axis, ...]
    drafts: int

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of parameters."""
        return list(itertools.combinations(range(len(self.axes)), 2))

    @property
    def count(self) -> int:
        """Constant, parameters, pairs, the draft as a whole, features."""
        return 1 + len(self.axes) + len(self.pairs) + 2

    def singles(self, left: Codes, right: Codes) -> Floats:
        """Return the likeness in each parameter, shape (axes, left, right)."""
        found = [axis.likeness[np.ix_(left[:, a], right[:, a])] for a, axis in enumerate(self.axes)]
        return np.array(found).reshape(len(self.axes), len(left), len(right))

    def stack(self, codes: Codes, features: Floats) -> Floats:
        """Return every component among assignments, shape (count, n, n)."""
        singles = self.singles(codes, codes)
        found = np.empty((self.count, len(codes), len(codes)))
        found[0] = 1.0
        found[1 : 1 + len(self.axes)] = singles
        for at, (i, j) in enumerate(self.pairs, start=1 + len(self.axes)):
            np.multiply(singles[i], singles[j], out=found[at])
        found[-2] = np.prod(singles[: self.drafts], axis=0) if self.drafts else 1.0
        found[-1] = features @ features.T
        return found

    def covariance(self, weights: Floats, left: Codes, right: Codes) -> Floats:
        """Return the kernel without features and noise, shape (left, right), for variances as `priors` orders them."""
        singles = self.singles(left, right)
        found = np.full(singles.shape[1:], weights[0])
        found += np.tensordot(weights[1 : 1 + len(singles)], singles, axes=1)
        for weight, (i, j) in zip(weights[1 + len(singles) : -3], self.pairs, strict=True):
            found += weight * singles[i] * singles[j]
        found += weights[-3] * (np.prod(singles[: self.drafts], axis=0) if self.drafts else 1.0)
        return found

    def priors(self, spreads: Spreads) -> Floats:
        """Return the prior variance of each component, and of the noise behind them."""
        singles = [spreads.draft_single] * self.drafts + [spreads.single] * (len(self.axes) - self.drafts)
        draft_pairs = spreads.pair * spreads.draft_single / spreads.single
        pairs = [draft_pairs if j < self.drafts else spreads.pair for _, j in self.pairs]
        return np.square([spreads.mean, *singles, *pairs, spreads.draft, 1.0, spreads.noise])
