"""Parameter values as codes, and how alike two values of one parameter are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spectune.space import Parameter, Value

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

LENGTH = 0.4
"""Distance at which two values of an ordered parameter are fairly alike, the whole range being 1."""
LEAST_ORDERED = 3  # values; two are only the same or not


@dataclass(frozen=True)
class Axis:
    """One parameter that varies.

    Attributes:
        name: Its name.
        values: Its values, ascending where they are ordered; a candidate may also lack it: the code `len(values)`.
        positions: Where they lie on a scale on which near values behave alike; None where they are only the same or
            not.
    """

    name: str
    values: tuple[Value, ...]
    positions: tuple[float, ...] | None = None

    @property
    def ordered(self) -> bool:
        """Whether near values behave alike."""
        return self.positions is not None

    @classmethod
    def of(cls, parameter: Parameter) -> Axis:
        """Take a parameter of a space; numbers lie on a logarithmic scale, also those a variable spells as text."""
        values = tuple(parameter.values)
        numbers = [number for value in values if (number := _number(value)) is not None]
        if len(values) < LEAST_ORDERED or len(numbers) < len(values):
            return cls(parameter.name, values)
        ascending = sorted(zip(numbers, values, strict=True))
        positions = tuple(math.copysign(math.log1p(abs(number)), number) for number, _ in ascending)
        return cls(parameter.name, tuple(value for _, value in ascending), positions)

    @cached_property
    def codes(self) -> Mapping[object, int]:
        """Code of each value."""
        return {_key(value): index for index, value in enumerate(self.values)}

    def code(self, value: Value | None) -> int:
        """Return the code of a value; one that is absent or not of the space has the code of absence."""
        return self.codes.get(_key(value), len(self.values))

    @cached_property
    def likeness(self) -> Floats:
        """Kernel between codes, shape (values + 1, values + 1), ones on the diagonal.

        Ordered values by a Gaussian of their distance, others by identity.
        """
        alike = np.eye(len(self.values) + 1)
        if self.positions is not None:
            at = np.array(self.positions)
            distance = (at[:, None] - at[None, :]) / (np.ptp(at) or 1.0) / LENGTH
            alike[:-1, :-1] = np.exp(-0.5 * distance**2)
        return alike


def encode(axes: Sequence[Axis], rows: Iterable[Mapping[str, Value]]) -> Codes:
    """Return the codes of assignments, shape (rows, axes)."""
    codes = [[axis.code(row.get(axis.name)) for axis in axes] for row in rows]
    return np.array(codes, np.int64).reshape(len(codes), len(axes))


def _key(value: Value | None) -> object:
    return (type(value) is bool, value)


def _number(value: Value) -> float | None:
    if isinstance(value, bool | tuple):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
