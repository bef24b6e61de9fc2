"""Any Optuna search space, without knowledge of engines: a Gaussian process over the values, in steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spectune.search.guided.acquisition import expected_improvement
from spectune.search.guided.encoding import Axis, Codes
from spectune.search.guided.kernel import Components, Spreads
from spectune.search.guided.residual import Residual

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Floats = npt.NDArray[np.float64]

MOST_STEPS = 33  # of a continuous or long range
SCATTERED, NEAR_BEST = 800, 200  # points looked at: anywhere, and one or two steps of one parameter from the best
STANDARD = Spreads(single=0.6, pair=0.2, draft=0.7, draft_single=0.6, mean=1.0, noise=0.1)  # of standardised values


@dataclass(frozen=True)
class Grid:
    """A search space as axes of few values.

    Attributes:
        space: Name → Optuna's distribution.
        axes: In the order of the names.
    """

    space: Mapping[str, BaseDistribution]
    axes: tuple[Axis, ...]

    @classmethod
    def of(cls, space: Mapping[str, BaseDistribution]) -> Grid:
        """Lay a grid over a search space."""
        return cls(space, tuple(_axis(name, distribution) for name, distribution in space.items()))

    def codes(self, params: Sequence[Mapping[str, Any]]) -> Codes:
        """Return the codes of assignments, those between steps rounded."""
        return np.array([[_code(axis, row[axis.name]) for axis in self.axes] for row in params], np.int64).reshape(
            -1, len(self.axes)
        )

    def values(self, codes: Codes) -> dict[str, Any]:
        """Return the assignment of one row of codes."""
        return {axis.name: axis.values[code] for axis, code in zip(self.axes, codes.tolist(), strict=True)}


def suggest(
    space: Mapping[str, BaseDistribution],
    params: Sequence[Mapping[str, Any]],
    scores: Floats,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return the assignment with the greatest expected improvement of the score.

    Args:
        space: Name → distribution, not empty.
        params: Assignments that were tried, at least one.
        scores: Theirs, larger is better, finite.
        rng: Draws the points that are looked at.
    """
    grid = Grid.of(space)
    codes = grid.codes(params)
    spread = float(np.std(scores)) or 1.0
    values = (scores - scores.mean()) / spread
    components = Components(grid.axes, len(grid.axes))
    fitted = Residual.fit(components, codes, np.zeros((len(codes), 0)), values[:, None], STANDARD)
    sizes = np.array([len(axis.values) for axis in grid.axes])
    points = rng.integers(0, sizes, (SCATTERED, len(sizes)))
    near = np.repeat(codes[int(np.argmax(values))][None], NEAR_BEST, axis=0)
    moved = rng.integers(0, len(sizes), NEAR_BEST)
    near[np.arange(NEAR_BEST), moved] += rng.choice([-2, -1, 1, 2], NEAR_BEST)
    points = np.unique(np.vstack([points, np.clip(near, 0, sizes - 1)]), axis=0)
    means = fitted.means(points)[0]
    deviations = np.sqrt(fitted.variances(points, np.zeros((len(points), 0))))
    best = float(fitted.means(codes)[0].max())
    tried = (points[:, None, :] == codes[None]).all(axis=2).any(axis=1)
    gains = np.where(tried, -1.0, expected_improvement(means, deviations, best))
    return grid.values(points[int(np.argmax(gains))])


def _axis(name: str, distribution: BaseDistribution) -> Axis:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        return Axis(name, tuple(distribution.choices))  # type: ignore[arg-type]  # whatever Optuna lets be a choice
    assert isinstance(distribution, FloatDistribution | IntDistribution), "Optuna has no other distributions"
    low, high, step = distribution.low, distribution.high, distribution.step
    if distribution.log:
        raw = np.exp(np.linspace(math.log(low), math.log(high), MOST_STEPS))
    elif step is None:
        raw = np.linspace(low, high, MOST_STEPS)
    else:
        count = round((high - low) / step) + 1
        raw = low + step * np.unique(np.round(np.linspace(0, count - 1, min(count, MOST_STEPS))))
    whole = isinstance(distribution, IntDistribution)
    values = sorted({round(x) if whole else float(min(max(x, low), high)) for x in raw.tolist()})
    at = tuple(math.log(value) if distribution.log else float(value) for value in values)
    return Axis(name, tuple(values), at)


def _code(axis: Axis, value: Any) -> int:
    if axis.positions is None:
        return next((i for i, v in enumerate(axis.values) if v is value or v == value), len(axis.values))
    return int(np.argmin([abs(float(v) - float(value)) for v in axis.values]))  # type: ignore[arg-type]
