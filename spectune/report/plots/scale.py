"""From figures to places on an axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis, percent from its beginning (the vertical axis begins at the top)."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from one figure to another; figures outside are drawn at its ends."""

    low: float
    high: float

    def __post_init__(self) -> None:
        assert self.low < self.high, f"a scale needs room, but got {self}"

    @classmethod
    def over(cls, values: Iterable[float | None], *, holding: Sequence[float] = (), room: float = 0.05) -> Scale:
        """Return a scale over all known figures.

        Args:
            values: What is drawn; unknown and infinite figures are left out.
            holding: Figures that the scale must hold, exactly where they are an end of it (a bar begins at zero).
            room: Share of the extent that is kept free beyond figures at an end.
        """
        found = [value for value in values if value is not None and math.isfinite(value)]
        low, high = min([*found, *holding], default=0.0), max([*found, *holding], default=1.0)
        extent = (high - low) or abs(high) or 1.0
        return cls(
            low if low in holding else low - room * extent,
            high if high in holding and high > low else high + room * extent,
        )

    def across(self, value: float) -> float:
        """Return the place of a figure, percent from the left."""
        return round(100.0 * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low), 2)

    def up(self, value: float) -> float:
        """Return the place of a figure on a vertical axis, percent from the top."""
        return round(100.0 - self.across(value), 2)

    def steps(self, most: int = 6) -> list[float]:
        """Return round figures on the axis, 1, 2 or 5 times a power of ten apart."""
        raw = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= raw * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) for number in range(first, last + 1)]

    def x_ticks(self, most: int = 6) -> tuple[Tick, ...]:
        """Return the labels of a horizontal axis."""
        return tuple(Tick(self.across(value), f"{value:,.10g}") for value in self.steps(most))

    def y_ticks(self, most: int = 6, unit: str = "") -> tuple[Tick, ...]:
        """Return the labels of a vertical axis."""
        return tuple(Tick(self.up(value), f"{value:,.10g}{unit}") for value in self.steps(most))
