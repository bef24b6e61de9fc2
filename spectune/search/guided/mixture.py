"""Prompt classes told apart: a mix of them accepts otherwise than all its cycles together say.

Each class has its share of the tokens, whatever is drafted, and takes as many cycles as its own accept length asks for.
The longer a chain, the fewer cycles go to the classes that the drafter is right on: counted together, a long chain's
cycles make a short one look worse than it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ClassSurvival:
    """The prompts of one class at one level of a launch.

    Attributes:
        name: Of the class.
        share: Of the level's requests, whose answers are equally long.
        survival: P(at least i drafts right), i from 1.
    """

    name: str
    share: float
    survival: tuple[float, ...]


def cycles(classes: Sequence[ClassSurvival], verifies: float) -> list[float]:
    """Return how many of all cycles went to each class."""
    each = [one.share / (1.0 + sum(one.survival)) for one in classes]
    return [verifies * own / sum(each) for own in each]


def blended(lengths: Sequence[Floats], shares: Sequence[float]) -> Floats:
    """Return the accept lengths of a mix, tokens over cycles, from those of its classes."""
    taken: Floats = np.tensordot(shares, np.stack(lengths) ** -1.0, axes=1)
    return sum(shares) / taken
