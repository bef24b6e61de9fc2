"""Launches that are made to accept so many tokens, against what the arithmetic predicts for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from spectune.analysis.break_even import decode_speed
from spectune.analysis.estimate import Estimate, ratio
from spectune.analysis.measurement import LevelMeasurement
from spectune.jsonable import Jsonable

MOST_LENGTHS = 4
STEADY = 0.05
"""Cycles of the same launch, made again, further apart than this judge no prediction."""
OBEYED = 0.05
"""An accept length further than this from the forced one was not forced."""


@dataclass(frozen=True, slots=True)
class ForcedLevel(Jsonable):
    """One forced accept length at one level.

    Attributes:
        level: The load point.
        forced: The accept length that was asked for.
        accept_length: What came of it.
        predicted_tok_s: Forced accept length / cycle of the candidate launched as it is, in between.
        measured_tok_s: Decode speed of one request, while no other one is prefilled.
    """

    level: str
    forced: float
    accept_length: Estimate
    predicted_tok_s: float
    measured_tok_s: Estimate

    @property
    def off(self) -> float:
        """How far the measurement is from the prediction, relative to it."""
        return self.measured_tok_s.est / self.predicted_tok_s - 1.0

    @property
    def obeyed(self) -> bool:
        """Whether the engine accepted as it was told."""
        return abs(self.accept_length.est / self.forced - 1.0) <= OBEYED

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values, and how far off it is."""
        return {**super(ForcedLevel, self).to_json(), "off": self.off, "obeyed": self.obeyed}


def forced_lengths(bound: int) -> tuple[int, ...]:
    """Return the accept lengths to force: whole numbers from 1 to the bound, four at most.

    Between two whole numbers SGLang draws one of them for every batch, on every rank for itself.
    """
    return tuple(sorted({round(length) for length in np.linspace(1.0, bound, MOST_LENGTHS).tolist()}))


@dataclass(frozen=True, slots=True)
class ForcedRuns(Jsonable):
    """Everything that was launched to test the predictions for one candidate.

    Attributes:
        levels: Every forced accept length at every level.
        apart: How much the cycles of the candidate as it is differed before and after a round, relative, at most: what
            the predictions cannot be better than.
    """

    levels: tuple[ForcedLevel, ...]
    apart: float

    @property
    def worst(self) -> float:
        """The largest distance of a measurement from its prediction, relative; 0 without any."""
        return max((abs(level.off) for level in self.levels), default=0.0)

    @property
    def steady(self) -> bool:
        """Whether the machine held still enough for the predictions to be judged at all."""
        return self.apart <= STEADY

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values, and what follows from them."""
        return {**super(ForcedRuns, self).to_json(), "worst": self.worst, "steady": self.steady}


@dataclass(frozen=True, slots=True)
class ForcedRound:
    """One launch for each forced accept length, between two launches of the candidate as it is.

    Attributes:
        before: Levels of the candidate as it is, launched first.
        forced: Accept length → levels of the same candidate, made to accept that.
        after: Levels of the candidate as it is, launched last.
    """

    before: Sequence[LevelMeasurement]
    forced: Mapping[int, Sequence[LevelMeasurement]]
    after: Sequence[LevelMeasurement]

    def cycles(self) -> dict[str, tuple[float, float]]:
        """Return the cycles of the candidate as it is at every level, first and last, in ms."""
        first, last = ({level.level: _cycle(level).est for level in levels} for levels in (self.before, self.after))
        return {name: (first[name], last[name]) for name in first if name in last}

    def compared(self) -> list[ForcedLevel]:
        """Compare what was forced with what the launches around it predict."""
        cycles = {name: math.sqrt(first * last) for name, (first, last) in self.cycles().items()}
        return [
            ForcedLevel(
                level.level, float(length), level.accept_length, decode_speed(length, cycles[level.level]),
                ratio(level.accept_length, _cycle(level)).scaled(1000.0),
            )
            for length, levels in self.forced.items()
            for level in levels
            if level.level in cycles
        ]  # fmt: skip


def against_predictions(rounds: Sequence[ForcedRound]) -> ForcedRuns:
    """Compare forced launches with what the launches as it is, made around them, predict: means over the rounds.

    Cycles are those without the standstills while other requests' prompts are prefilled: requests whose answers all
    grow alike end together, and are then prefilled together, which says nothing of the arithmetic.
    """
    found: dict[tuple[str, float], list[ForcedLevel]] = {}
    for level in (level for one in rounds for level in one.compared()):
        found.setdefault((level.level, level.forced), []).append(level)
    apart = (abs(last / first - 1.0) for one in rounds for first, last in one.cycles().values())
    return ForcedRuns(tuple(map(_mean, found.values())), max(apart, default=0.0))


def _mean(levels: Sequence[ForcedLevel]) -> ForcedLevel:
    """Return the mean of the same level in several rounds; ends of intervals are averaged alike."""

    def mean(estimates: Sequence[Estimate]) -> Estimate:
        return Estimate(*(fmean(getattr(one, end) for one in estimates) for end in ("est", "lo", "hi")))

    return ForcedLevel(
        levels[0].level, levels[0].forced, mean([level.accept_length for level in levels]),
        fmean(level.predicted_tok_s for level in levels), mean([level.measured_tok_s for level in levels]),
    )  # fmt: skip


def _cycle(level: LevelMeasurement) -> Estimate:
    """Return the cycle without prefills; with them where somebody always waits for one."""
    return level.cycle_ms if level.decode_cycle_ms is None else level.decode_cycle_ms
