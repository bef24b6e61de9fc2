"""Where launches fail: regions ruled out for good, and how likely each other candidate is to fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectune.search.guided.encoding import Axis, Codes

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

UNKNOWN_BELOW = 0.1  # part of a demand that failed, below which nothing is expected to fail for it
PAIR_WEIGHT = 0.15  # of an explanation by two values, beside one by a single value
EITHER_SIDE = 0.5  # of a threshold, of which an ordered parameter has two


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
class Atom:
    """A value of one parameter, or all values on one side of it.

    Attributes:
        axis: Of the parameter.
        low: Smallest code.
        high: Largest code.
    """

    axis: int
    low: int
    high: int

    def holds(self, codes: Codes) -> Booleans:
        """Return for which assignments it holds, shape (n,)."""
        column = codes[:, self.axis]
        found: Booleans = (column >= self.low) & (column <= self.high)
        return found


@dataclass(frozen=True)
class Explanation:
    """A condition under which launches may fail: one or two atoms that hold together."""

    atoms: tuple[Atom, ...]
    weight: float

    def holds(self, codes: Codes) -> Booleans:
        """Return for which assignments it holds, shape (n,)."""
        found = self.atoms[0].holds(codes)
        for atom in self.atoms[1:]:
            found = found & atom.holds(codes)
        return found


@dataclass(frozen=True)
class Region:
    """Failures with a common explanation, and all explanations they share that no success contradicts."""

    explanations: tuple[Explanation, ...]

    def risk(self, draft_codes: Codes, side_codes: Codes) -> Floats:
        """Return the probability that a candidate lies in the region, shape (drafts, sides)."""
        drafts = draft_codes.shape[1]
        left = np.ones((len(self.explanations), len(draft_codes)))
        right = np.ones((len(self.explanations), len(side_codes)))
        for row, explanation in enumerate(self.explanations):
            left[row] = explanation.weight
            for atom in explanation.atoms:
                if atom.axis < drafts:
                    left[row] *= atom.holds(draft_codes)
                else:
                    right[row] *= Atom(atom.axis - drafts, atom.low, atom.high).holds(side_codes)
        total = sum(explanation.weight for explanation in self.explanations)
        found: Floats = left.T @ right / total
        return found


def regions(axes: Sequence[Axis], failed: Codes, succeeded: Codes) -> list[Region]:
    """Explain the failures by as few regions as their explanations allow, each failure joining the first it fits.

    Args:
        axes: Parameters.
        failed: Assignments that failed, shape (n, axes).
        succeeded: Assignments that ran.
    """
    found: list[tuple[list[Explanation], Codes]] = []
    for row in failed:
        for index, (explanations, members) in enumerate(found):
            shared = [e for e in explanations if e.holds(row[None])[0]]
            if shared:
                found[index] = (shared, np.vstack([members, row]))
                break
        else:
            candidates = [e for e in _explanations(axes, row) if not e.holds(succeeded).any()]
            if candidates:
                found.append((candidates, row[None]))
    return [Region(tuple(explanations)) for explanations, _ in found]


def _explanations(axes: Sequence[Axis], row: Codes) -> Iterable[Explanation]:
    atoms = [(atom, weight) for index, axis in enumerate(axes) for atom, weight in _atoms(index, axis, int(row[index]))]
    for at, (atom, weight) in enumerate(atoms):
        yield Explanation((atom,), weight)
        for other, more in atoms[at + 1 :]:
            if other.axis != atom.axis:
                yield Explanation((atom, other), weight * more * PAIR_WEIGHT)


def _atoms(index: int, axis: Axis, code: int) -> list[tuple[Atom, float]]:
    last = len(axis.values) - 1
    if not axis.ordered or code > last:
        return [(Atom(index, code, code), 1.0)]
    return [(Atom(index, code, last), EITHER_SIDE), (Atom(index, 0, code), EITHER_SIDE)]
