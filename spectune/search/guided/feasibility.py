"""Where launches fail: how likely each candidate lies in a region that fails, by all that may explain the failures.

A region is a condition on one parameter or on two; every parameter, and of it every value or threshold, is as likely as
any other before the first failure. What ran refutes a condition. The failures are explained by any set of conditions
that covers them, each further one at the cost of its prior: few regions are likelier than many, and what several sets
agree on is all but certain.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectune.search.guided.encoding import Axis, Codes

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

UNKNOWN_BELOW = 0.1  # part of a demand that failed, below which nothing is expected to fail for it
PAIRED = 0.5  # of all regions are conditions on two parameters
BY_CHANCE = 1e-4  # prior of a failure that no region explains
COVERS, PATTERNS = 60, 60  # likeliest sets of regions that are followed, and patterns tried for a failure
MOST = 60  # failures: each is a bit of an integer


def fits(demands: Floats, largest_run: float, smallest_failed: float) -> Floats:
    """Return the probability that each demand on memory can be met: failures for want of it are monotone.

    The limit lies between what ran and what did not, anywhere on a logarithmic scale.

    Args:
        demands: Not negative.
        largest_run: Largest demand that was met, 0 if none was.
        smallest_failed: Smallest one that was not, larger than that.
    """
    low, high = np.log(max(largest_run, UNKNOWN_BELOW * smallest_failed)), np.log(smallest_failed)
    found: Floats = np.clip((high - np.log(np.maximum(demands, 1e-9))) / (high - low), 0.0, 1.0)
    return found


@dataclass(frozen=True)
class Atoms:
    """Conditions on one parameter each: its code lies within bounds. Sorted by parameter.

    Attributes:
        axis: Index of the parameter, shape (atoms,).
        low: Smallest code.
        high: Largest code.
        prior: Probability among the conditions on this parameter.
    """

    axis: Integers
    low: Integers
    high: Integers
    prior: Floats

    @classmethod
    def of(cls, axes: Sequence[Axis], failed: Codes) -> Atoms:
        """Return the conditions that hold for any of these assignments."""
        found: list[tuple[int, int, int, float]] = []
        for index, axis in enumerate(axes):
            codes, last = sorted(set(failed[:, index].tolist())), len(axis.values) - 1
            within = [code for code in codes if code <= last]
            if axis.ordered and within:
                prior = 0.5 / last
                found += [(index, 0, high, prior) for high in range(within[0], last)]
                found += [(index, low, last, prior) for low in range(1, within[-1] + 1)]
                codes = [code for code in codes if code > last]
            found += [(index, code, code, 1.0 / len(axis.values)) for code in codes]
        table: Floats = np.array(found, np.float64).reshape(-1, 4)
        index, low, high = table[:, :3].astype(np.int64).T
        return cls(index, low, high, table[:, 3])

    def hold(self, codes: Codes, which: Booleans | None = None, first: int = 0) -> Floats:
        """Return 1 where they hold for assignments, 0 elsewhere, shape (atoms, n).

        Args:
            codes: Shape (n, axes).
            which: Of the atoms; all by default.
            first: Axis of the first column.
        """
        chosen = slice(None) if which is None else which
        columns = codes.T[self.axis[chosen] - first]
        held = (columns >= self.low[chosen, None]) & (columns <= self.high[chosen, None])
        return held.astype(np.float64)


@dataclass(frozen=True)
class Suspicion:
    """What the failures of one kind are blamed on.

    Attributes:
        atoms: Conditions on one parameter.
        singles: Probability that a region is this condition alone, shape (atoms,).
        pairs: That it is the first condition and the second, which is on a later parameter, shape (atoms, atoms).
    """

    atoms: Atoms
    singles: Floats
    pairs: Floats

    def risk(self, draft_codes: Codes, side_codes: Codes) -> Floats:
        """Return the probability that a candidate lies in a region that fails, shape (drafts, sides)."""
        drafts = draft_codes.shape[1]
        left = self.atoms.axis < drafts
        on_drafts, on_sides = self.atoms.hold(draft_codes, left), self.atoms.hold(side_codes, ~left, drafts)
        expected = on_drafts.T @ self.pairs[np.ix_(left, ~left)] @ on_sides
        expected += self._alone(left, on_drafts)[:, None] + self._alone(~left, on_sides)
        found: Floats = np.minimum(1.0, expected)
        return found

    def _alone(self, which: Booleans, held: Floats) -> Floats:
        """Return what conditions on one part of a candidate count, shape (n,)."""
        found: Floats = self.singles[which] @ held + (held * (self.pairs[np.ix_(which, which)] @ held)).sum(axis=0)
        return found


def suspicion(axes: Sequence[Axis], failed: Codes, ran: Codes) -> Suspicion:
    """Return what failures are blamed on.

    Args:
        axes: Parameters.
        failed: Assignments that failed for the same kind of reason, shape (n, axes), n ≥ 1.
        ran: Assignments that ran.
    """
    failed = failed[-MOST:]
    atoms = Atoms.of(axes, failed)
    held_failed, held_ran = atoms.hold(failed).astype(np.int64), atoms.hold(ran)
    bits = held_failed @ (1 << np.arange(len(failed)))
    singles = (1.0 - PAIRED) / len(axes) * atoms.prior * ~held_ran.any(axis=1)
    later = atoms.axis[:, None] < atoms.axis[None, :]
    pairs = 2.0 * PAIRED / max(1, len(axes) * (len(axes) - 1)) * np.outer(atoms.prior, atoms.prior)
    pairs = pairs * (later & (held_ran @ held_ran.T == 0.0))
    covered = np.concatenate([bits, np.bitwise_and.outer(bits, bits).ravel()])
    patterns, pattern_of = np.unique(np.asarray(covered, np.int64), return_inverse=True)
    priors = np.concatenate([singles, pairs.ravel()])
    weights: Floats = np.where(patterns > 0, np.bincount(pattern_of, priors), 0.0)
    shares = _marginals(patterns, weights, len(failed)) / np.maximum(weights, np.finfo(np.float64).tiny)
    blamed = priors * shares[pattern_of]
    count = len(singles)
    return Suspicion(atoms, blamed[:count], blamed[count:].reshape(count, count))


def _marginals(patterns: Integers, weights: Floats, failures: int) -> Floats:
    """Return the probability of each pattern of failures to be that of a region.

    Args:
        patterns: Failures covered, a bit each.
        weights: Prior of all regions with the pattern.
        failures: How many there are; all of them are to be covered.
    """
    known = [(int(patterns[at]), float(weights[at]), int(at)) for at in np.flatnonzero(weights)]
    covers: list[tuple[float, int, tuple[int, ...]]] = [(1.0, 0, ())]
    for failure in range(failures):
        bit = 1 << failure
        holding = heapq.nlargest(
            PATTERNS,
            (item for item in known if item[0] & bit),
            key=lambda item: item[1] / BY_CHANCE ** item[0].bit_count(),
        )
        grown = [cover for cover in covers if cover[1] & bit]
        for weight, mask, used in covers:
            if not mask & bit:
                grown.append((weight * BY_CHANCE, mask | bit, used))
                grown += [(weight * prior, mask | pattern, (*used, at)) for pattern, prior, at in holding]
        covers = heapq.nlargest(COVERS, grown)
        scale = covers[0][0]
        covers = [(weight / scale, mask, used) for weight, mask, used in covers]
    total = sum(weight for weight, _, _ in covers)
    found = np.zeros(len(patterns))
    for weight, _, used in covers:
        found[list(used)] += weight / total
    return found
