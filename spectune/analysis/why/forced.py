"""Launches that are made to accept so many tokens, against what the arithmetic predicts for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectune.analysis.break_even import decode_speed
from spectune.analysis.estimate import Estimate, ratio
from spectune.analysis.measurement import LevelMeasurement
from spectune.analysis.why.jsonable import Jsonable

MOST_LENGTHS = 4
OBEYED = 0.05
"""An accept length further than this from the forced one was not forced."""


@dataclass(frozen=True, slots=True)
class ForcedLevel(Jsonable):
    """One forced accept length at one level.

    Attributes:
        level: The load point.
        forced: The accept length that was asked for.
        accept_length: What came of it.
        predicted_tok_s: Forced accept length / cycle of the candidate launched as it is, beside these launches.
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


def against_prediction(
    plain: Sequence[LevelMeasurement], forced: Sequence[LevelMeasurement], accept_length: float
) -> list[ForcedLevel]:
    """Compare a forced launch with what the launch as it is predicts, level by level.

    Speeds are those without the standstills while other requests' prompts are prefilled: requests whose answers all
    grow alike end together, and are then prefilled together, which says nothing of the arithmetic.

    Args:
        plain: Levels of the candidate as it is.
        forced: Levels of the same candidate, made to accept `accept_length`.
        accept_length: The forced one.
    """
    before = {level.level: level for level in plain}
    found = []
    for level in forced:
        if level.level in before:
            cycle, other = _cycles(level, before[level.level])
            speed = ratio(level.accept_length, cycle).scaled(1000.0)
            predicted = decode_speed(accept_length, other.est)
            found.append(ForcedLevel(level.level, accept_length, level.accept_length, predicted, speed))
    return found


def _cycles(one: LevelMeasurement, other: LevelMeasurement) -> tuple[Estimate, Estimate]:
    """Return the cycles of two launches without prefills; with them where either has no others."""
    if one.decode_cycle_ms is None or other.decode_cycle_ms is None:
        return one.cycle_ms, other.cycle_ms
    return one.decode_cycle_ms, other.decode_cycle_ms


def worst(levels: Sequence[ForcedLevel]) -> float:
    """Return the largest distance of a measurement from its prediction, relative; 0 without any."""
    return max((abs(level.off) for level in levels), default=0.0)
