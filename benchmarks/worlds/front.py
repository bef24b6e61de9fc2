"""Hypervolume of a set of points above the origin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def hypervolume(points: Sequence[npt.NDArray[np.float64]]) -> float:
    """Return the volume that the boxes from the origin to each point cover together.

    Args:
        points: Larger is better in every coordinate; coordinates below 0 count as 0. Exact in any number of dimensions,
            fast in one and two.
    """
    rows = np.array([point for point in points if (point > 0.0).all()])
    if not len(rows):
        return 0.0
    if rows.shape[1] == 1:
        return float(rows.max())
    rows = rows[np.argsort(-rows[:, 0])]
    if rows.shape[1] == 2:
        heights = np.maximum.accumulate(rows[:, 1])
        before = np.concatenate([[0.0], heights[:-1]])
        return float((rows[:, 0] * (heights - before)).sum())
    edges = np.append(rows[:, 0], 0.0)
    return sum(
        float(edges[at] - edges[at + 1]) * hypervolume(list(rows[: at + 1, 1:]))
        for at in range(len(rows))
        if edges[at] > edges[at + 1]
    )
