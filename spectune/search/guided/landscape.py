"""What is believed of every candidate after the launches so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from spectune.search.guided.chart import Chart
from spectune.search.guided.evidence import Evidence
from spectune.search.guided.factors import root
from spectune.search.guided.feasibility import fits, suspicion
from spectune.search.guided.kernel import Components, Spreads
from spectune.search.guided.physics import Physics, Target, Works
from spectune.search.guided.residual import Residual
from spectune.serving import FailureClass
from spectune.space import SearchSpace

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

JITTER = 1e-8
BOUND_DOUBT = 0.10  # standard deviation of the log of a bounded metric: a candidate near its bound is no outcast
MOVED = 0.1  # standard deviation of the log by which all figures of an earlier study may be off together
UNEXPLAINED = Spreads(single=0.15, pair=0.05, draft=0.2, draft_single=0.3, mean=1.0, noise=0.02)


@dataclass(frozen=True)
class Landscape:
    """Beliefs on all candidates of a chart.

    Attributes:
        chart: The candidates.
        targets: What is predicted.
        goals: How many of the targets are objectives; the others are bounded.
        means: Expected value of each target, shape (targets, candidates).
        feasible: Probability that a launch succeeds and keeps the bounds, shape (candidates,).
        features: What may be wrong with the physics of each setting, shape (settings, parts).
        residual: The process behind the score: where physics explains some objectives alone, that of the others' part
            in it, which is by far the less certain one.
        physics: The models behind them; None where no level gave any.
    """

    chart: Chart
    targets: tuple[Target, ...]
    goals: int
    means: Floats
    feasible: Floats
    features: Floats
    residual: Residual
    physics: Physics | None

    @cached_property
    def score(self) -> Floats:
        """Mean of the objectives: what a recommendation is chosen by."""
        found: Floats = self.means[: self.goals].mean(axis=0)
        return found

    def deviations(self, numbers: Integers) -> Floats:
        """Return the standard deviation of the score of some candidates, of the launch's noise without."""
        settings = self.chart.settings_at(numbers)
        return np.sqrt(self.residual.variances(self.chart.codes_at(numbers), self.features[settings]))

    def deviations_from(self, numbers: Integers, other: int) -> Floats:
        """Return the standard deviation of how the score of some candidates differs from another one's."""
        one, settings = np.array([other]), self.chart.settings_at(numbers)
        beside = self.chart.codes_at(one), self.features[self.chart.settings_at(one)]
        return np.sqrt(self.residual.contrasts(self.chart.codes_at(numbers), self.features[settings], *beside))

    def draws(self, numbers: Integers, count: int, rng: np.random.Generator, inflation: float = 1.0) -> Floats:
        """Draw scores of some candidates together, shape (count, candidates), deviations inflated by a factor."""
        features = self.features[self.chart.settings_at(numbers)]
        covariance = self.residual.posterior(self.chart.codes_at(numbers), features)
        spread = root(covariance, JITTER)
        found: Floats = self.score[numbers] + inflation * rng.standard_normal((count, len(numbers))) @ spread.T
        return found

    @cached_property
    def doubts(self) -> Floats:
        """Standard deviation of each candidate's score that stems from the physics."""
        return self.chart.spread(self.residual.doubts(self.features))


def survey(
    chart: Chart,
    space: SearchSpace,
    targets: tuple[Target, ...],
    evidence: Sequence[Evidence],
    *,
    physical: bool = True,
    sober: bool = False,
) -> Landscape:
    """Fit all models and predict every candidate.

    Args:
        chart: The candidates.
        space: Its search space.
        targets: As `targets_of` gives them.
        evidence: At least one launch with targets; those of earlier studies are told by their discount.
        physical: Whether to use acceptance and cycle time; without, the process stands alone.
        sober: Whether effects are expected to be as large as the launches let expect, instead of as large as is usual.
    """
    measured = [item for item in evidence if item.targets is not None]
    heard = [item for item in evidence if item.targets is None and item.discount is not None and item.levels]
    goals = len(space.objectives)
    ground = _Ground.of(chart, targets, goals, measured, heard, physical=physical)
    codes = chart.codes([item.candidate for item in measured])
    values = np.array([item.targets for item in measured]).T
    errors = np.array([item.noise for item in measured])
    own = np.array([item.discount is None for item in measured])
    means = np.empty((len(targets), chart.table.size))
    process, parts = None, 0
    for rows, spreads, used in ((ground.explained, Spreads(), None), (ground.unexplained, UNEXPLAINED, 0)):
        if not rows:
            continue
        left = values[rows] - ground.measured[rows]
        middle = np.median(left[:, own] if own.any() else left, axis=1, keepdims=True)
        components = Components(chart.axes, chart.draft_axes)
        seen = ground.seen_features[:, :used]
        fitted = Residual.fit(components, codes, seen, (left - middle).T, spreads, errors, learned=sober)
        means[rows] = _everywhere(chart, fitted, ground.everywhere[rows], ground.features[:, :used]) + middle
        if process is None or rows[0] < goals:
            share = sum(row < goals for row in rows) / goals
            process, parts = fitted.part(share or 1.0), fitted.features.shape[1]
    assert process is not None, "a space has at least one objective"
    feasible = chances(chart, evidence) * _keeps(space, means[goals:])
    return Landscape(chart, targets, goals, means, feasible, ground.features[:, :parts], process, ground.physics)


@dataclass(frozen=True)
class _Ground:
    """What is expected before any process is asked: by physics where it explains a target, nothing elsewhere.

    Attributes:
        physics: Fitted to the launches; None where they tell nothing of cycles, or it is not wanted.
        explained: Rows of the targets it explains.
        unexplained: The others.
        everywhere: Shape (targets, settings of the chart).
        measured: Shape (targets, launches).
        features: What may be wrong about it, shape (settings of the chart, parts).
        seen_features: The same of the launches.
    """

    physics: Physics | None
    explained: list[int]
    unexplained: list[int]
    everywhere: Floats
    measured: Floats
    features: Floats
    seen_features: Floats

    @classmethod
    def of(
        cls,
        chart: Chart,
        targets: tuple[Target, ...],
        goals: int,
        measured: Sequence[Evidence],
        heard: Sequence[Evidence],
        *,
        physical: bool,
    ) -> _Ground:
        """Fit physics, if there is anything to fit it to; what was heard elsewhere tells of acceptance alone."""
        rows = list(range(len(targets)))
        settings = [chart.setting(item.candidate) for item in measured]
        shapes = len(chart.works.settings), len(measured)
        if not physical or all(level.concurrency is None for item in measured for level in item.levels):
            nothing = [np.zeros((len(targets), size)) for size in shapes]
            return cls(None, [], rows, *nothing, *[np.zeros((size, 0)) for size in shapes])
        known = [*settings, *(chart.setting(item.candidate) for item in heard)]
        physics = Physics.fit([*measured, *heard], known, chart.drafters, chart.depth)
        works = Works.of(settings, [target.load for target in targets if target.load is not None], chart.drafters)
        expected = [physics.expected(of, targets) for of in (chart.works, works)]
        features = [physics.features(of, targets[:goals], chart.works.drafts) for of in (chart.works, works)]
        moved = MOVED * np.array([[float(item.discount is not None)] for item in measured])
        if moved.any():
            features = [np.hstack([features[0], np.zeros((shapes[0], 1))]), np.hstack([features[1], moved])]
        explained = [row for row in rows if targets[row].load is not None]
        return cls(physics, explained, [row for row in rows if row not in explained], *expected, *features)


def _everywhere(chart: Chart, process: Residual, base: Floats, features: Floats) -> Floats:
    """Return the mean of every candidate, shape (targets, candidates), from what is expected of each setting."""
    ground = base + process.shift(features)
    surfaces = [process.surface(block.drafts, block.sides) + ground[:, block.settings] for block in chart.blocks]
    return np.concatenate([surface.reshape(len(base), -1) for surface in surfaces], axis=1)


def chances(chart: Chart, evidence: Sequence[Evidence]) -> Floats:
    """Return the probability that each candidate's launch succeeds, by the failures so far; 0 where it cannot."""
    found = np.ones(chart.table.size)
    for risk in sorted({_risk(item) for item in evidence}):
        found *= 1.0 - risk * (1.0 - _chances(chart, [item for item in evidence if _risk(item) == risk]))
    return found


def _risk(item: Evidence) -> float:
    return 1.0 if item.discount is None else item.discount.risk


def _chances(chart: Chart, evidence: Sequence[Evidence]) -> Floats:
    failed = [item for item in evidence if item.failure is not None]
    found = np.ones(chart.table.size)
    if not failed:
        return found
    ran = [item for item in evidence if item.failure is None]
    demands = [np.array([chart.setting(item.candidate).graph_demand for item in items]) for items in (failed, ran)]
    memory = np.array([item.failure is FailureClass.MEMORY for item in failed]) & (demands[0] > 0.0)
    if memory.any() and demands[0][memory].min() > demands[1].max(initial=0.0):
        wanted = np.array([setting.graph_demand for setting in chart.works.settings])
        found *= chart.spread(fits(wanted, demands[1].max(initial=0.0), demands[0][memory].min()))
        failed = [item for item, graphs in zip(failed, memory, strict=True) if not graphs]
    ran_codes = chart.codes([item.candidate for item in ran])
    for failure in sorted({item.failure for item in failed if item.failure is not None}):
        alike = chart.codes([item.candidate for item in failed if item.failure is failure])
        blamed = suspicion(chart.axes, alike, ran_codes)
        found *= 1.0 - np.concatenate([blamed.risk(b.drafts, b.sides).ravel() for b in chart.blocks])
    return found


def _keeps(space: SearchSpace, logs: Floats) -> Floats:
    """Return the probability that the bounds of the space are kept."""
    found = np.ones(logs.shape[1] if len(logs) else 1)
    for row, constraint in zip(logs, space.constraints, strict=True):
        if constraint.max is not None:
            found = found * ndtr((np.log(constraint.max) - row) / BOUND_DOUBT)
        if constraint.min is not None:
            found = found * ndtr((row - np.log(constraint.min)) / BOUND_DOUBT)
    return found
