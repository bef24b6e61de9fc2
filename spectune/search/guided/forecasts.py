"""How well each launch was predicted by those before it: what decides how far the models are followed.

A forecast is made by the models that the launches before it give. Later than `FRESH` launches these models change
little from one launch to the next: there, a block of launches is predicted by the models before the first of it. So a
study of 500 launches that is gone on with asks for a few fits, not for a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spectune.search.guided.evidence import Evidence
from spectune.search.guided.landscape import Landscape

WINDOW = 6  # launches, the last ones
LONG = 40  # launches, the last ones, that tell of deviations; the first ones, that tell whether an earlier study helps
FRESH, BLOCK = 40, 4  # launches, each predicted by all before it; then by blocks, doubled in length as the study is
FIRST = 3  # launches before the first forecast
LEAST = 4  # forecasts before physics is given up
BAD = 0.05  # root mean square error of the log score from which a search without physics is asked as well
CLEARLY = 0.7  # of the error with physics: better by chance only now and then
TEMPERED = 1.5  # factor on deviations where two ways to predict are compared: both are surer than they should be
UNTESTED, UNTESTED_COUNT = 1.5, 4.0  # deviations are taken for too small by this, until so many forecasts tell
EXPLORING, MOST_EXPLORING = 0.1, 0.4  # share of launches that look beyond the best prediction

Seen = tuple[Evidence, ...]


@dataclass(frozen=True)
class Forecast:
    """A launch's log score as predicted, and as measured."""

    mean: float
    deviation: float
    value: float

    @property
    def log_density(self) -> float:
        """Log density of the value, the same constant left out of all."""
        scale = TEMPERED * self.deviation
        return -0.5 * ((self.value - self.mean) / scale) ** 2 - math.log(scale)


class Forecasts:
    """One-step-ahead forecasts, made again from the evidence when they are not remembered."""

    def __init__(self, survey: Callable[[Seen, bool], Landscape]) -> None:
        self._survey = survey
        self._known: dict[tuple[int, bool], tuple[Seen, Forecast | None]] = {}

    def miss(self, seen: Seen) -> float:
        """Return the root mean square of the last errors in their own deviations; at least 1."""
        found = self._last(seen, physical=True)
        if not found:
            return 1.0
        return max(1.0, float(np.sqrt(np.mean([((f.value - f.mean) / f.deviation) ** 2 for f in found]))))

    def good(self, seen: Seen) -> bool:
        """Whether the last launches were well predicted."""
        found = self._last(seen, physical=True)
        return len(found) >= LEAST and _error(found) < BAD

    def inflation(self, seen: Seen) -> float:
        """Return by how much deviations are too small, as the last `LONG` forecasts tell; `UNTESTED` without any.

        It is no less than the last `WINDOW` tell: models that were surprised just now may be so again.
        """
        found = self._last(seen, physical=True, window=LONG)
        missed = sum(((f.value - f.mean) / f.deviation) ** 2 for f in found)
        pooled = math.sqrt((missed + UNTESTED_COUNT * UNTESTED**2) / (len(found) + UNTESTED_COUNT))
        return max(pooled, self.miss(seen))

    def exploring(self, seen: Seen) -> float:
        """Return the share of launches that should not follow the best prediction."""
        return min(MOST_EXPLORING, EXPLORING * self.miss(seen))

    def trusts_physics(self, seen: Seen) -> bool:
        """Whether physics predicted well, or at least no worse than a process without it."""
        forecasts = self._last(seen, physical=True)
        if len(forecasts) < LEAST or self.good(seen):
            return True
        return _error(self._last(seen, physical=False)) > CLEARLY * _error(forecasts)

    def likelihood(self, seen: Seen) -> float:
        """Return the log likelihood of the first `LONG` launches but the very first, each given those before it."""
        early = enumerate(seen[:LONG])
        found = [self._at(seen[: index + 1], True) for index, item in early if index and item.targets]
        return math.fsum(forecast.log_density for forecast in found if forecast is not None)

    def _last(self, seen: Seen, *, physical: bool, window: int = WINDOW) -> list[Forecast]:
        measured = [index for index, item in enumerate(seen) if item.targets is not None and index >= FIRST]
        found = [self._at(seen[: index + 1], physical) for index in measured[-window:]]
        return [forecast for forecast in found if forecast is not None]

    def _at(self, seen: Seen, physical: bool) -> Forecast | None:
        """Return the forecast of the last of these launches."""
        key = len(seen), physical
        if key not in self._known or self._known[key][0] != seen:
            self._known[key] = seen, self._made(seen, physical)
        return self._known[key][1]

    def _made(self, seen: Seen, physical: bool) -> Forecast | None:
        before, last = seen[: told_by(len(seen) - 1)], seen[-1]
        if last.targets is None or not any(item.targets for item in before):
            return None
        beliefs = self._survey(before, physical)
        number = beliefs.chart.table.number(last.candidate)
        if number is None:
            return None
        own = float(beliefs.deviations(np.array([number]))[0])
        deviation = float(np.hypot(own, beliefs.residual.noise))
        return Forecast(float(beliefs.score[number]), deviation, float(np.mean(last.targets[: beliefs.goals])))


def told_by(launches: int) -> int:
    """Return how many of so many launches the next one's forecast rests on: the first of them, at least 9 of 10."""
    block = BLOCK << (launches // FRESH).bit_length() - 1 if launches >= FRESH else 1
    return launches - launches % block


def _error(forecasts: list[Forecast]) -> float:
    if not forecasts:
        return 0.0
    return float(np.sqrt(np.mean([(f.value - f.mean) ** 2 for f in forecasts])))
