"""The configurations that nothing beats in everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Direction = Literal["maximize", "minimize"]


def pareto_set(points: Sequence[Sequence[float]], directions: Sequence[Direction]) -> list[int]:
    """Indices of the non-dominated points, in their order.

    A point is dominated when another is at least as good in every objective and better in one. Equal points do not
    dominate each other: all of them stay.

    Args:
        points: One row per configuration, one finite figure per objective.
        directions: Whether more or less of each objective is better.
    """
    signs = [1.0 if direction == "maximize" else -1.0 for direction in directions]
    assert all(len(point) == len(signs) for point in points), "every point needs a figure per objective"
    gains = [tuple(sign * figure for sign, figure in zip(signs, point, strict=True)) for point in points]
    return [index for index, gain in enumerate(gains) if not any(_dominates(other, gain) for other in gains)]


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(mine >= theirs for mine, theirs in zip(one, other, strict=True))
