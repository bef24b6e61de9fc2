"""The sections that say what is wanted: `objectives`, `constraints`, `targets` and `budget`."""

from __future__ import annotations

import math
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_serializer, model_validator

from spectune.space.metrics import METRICS, Direction, metric_problem
from spectune.space.sections import Amount, Positive, Section, Text

DEFAULT_TRIALS = 40
MOST_TRIALS = 1_000_000
"""Launches of a study: of a minute each they would take two years. Far beyond it the arithmetic overflows."""
MOST_SPEED = 1_000_000
"""tok/s of one request; what asks for more is a slip of the pen, and far beyond it the arithmetic overflows."""


class Objective(Section):
    """A metric to be made as large or as small as possible at one level.

    Attributes:
        maximize: The metric, where more is better.
        minimize: The metric, where less is better.
        level: Name of a level of the workload.
    """

    maximize: Text | None = None
    minimize: Text | None = None
    level: Text

    @model_validator(mode="after")
    def _known(self) -> Self:
        if (self.maximize is None) == (self.minimize is None):
            raise ValueError("an objective must have one of 'maximize' and 'minimize'")
        problem = metric_problem(self.metric)
        if problem is not None:
            raise ValueError(problem)
        right = METRICS[self.metric].direction
        if right != self.direction:
            raise ValueError(f"{self.metric} is better the other way: write {right}: {self.metric}")
        return self

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return self.maximize or self.minimize or ""

    @property
    def direction(self) -> Direction:
        """Which way is better."""
        return "maximize" if self.maximize is not None else "minimize"

    @property
    def name(self) -> str:
        """`decode_speed@c1`."""
        return f"{self.metric}@{self.level}"


class Constraint(Section):
    """A bound a candidate must keep at one level; written `{ttft_p95_ms: {max: 2000}, level: c32}`.

    Attributes:
        metric: What is bounded.
        max: Largest value allowed, in the metric's unit.
        min: Smallest value allowed.
        level: Name of a level of the workload.
    """

    metric: Text
    max: float | None = None
    min: float | None = None
    level: Text

    @model_validator(mode="before")
    @classmethod
    def _named_by_metric(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or "metric" in raw:
            return raw
        metrics = [key for key in raw if key != "level"]
        if len(metrics) != 1:
            raise ValueError(f"a constraint names one metric and its level, but got {raw}")
        metric = metrics[0]
        problem = metric_problem(metric)
        if problem is not None:
            raise ValueError(problem)
        bounds = raw[metric]
        if not isinstance(bounds, dict) or not bounds or not set(bounds) <= {"max", "min"}:
            raise ValueError(f"{metric} must be bounded by {{max: x}}, {{min: x}} or both, but got {bounds}")
        for key, bound in bounds.items():
            if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
                message = f"'{key}' of {metric} must be a number, but got {bound!r}"
                raise ValueError(message)
            if bound <= 0:
                fate = "nothing" if key == "max" else "everything"
                message = f"'{key}' of {metric} must be above 0, but got {bound!r}: {fate} keeps it"
                raise ValueError(message)
        return {"metric": metric, **bounds, **{key: raw[key] for key in ("level",) if key in raw}}

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.max is not None and self.min is not None and self.min > self.max:
            raise ValueError(f"nothing is at least {self.min} and at most {self.max}")
        return self

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        bounds = {"max": self.max, "min": self.min}
        return {self.metric: {key: x for key, x in bounds.items() if x is not None}, "level": self.level}

    def excess(self, value: float) -> float:
        """Return by how much `value` breaks the bound, in the metric's unit; 0 or less when it keeps it."""
        over = [] if self.max is None else [value - self.max]
        under = [] if self.min is None else [self.min - value]
        return max(over + under)


class Targets(Section):
    """Speeds somebody needs: the lines of the break-even table.

    Attributes:
        decode_speed: tok/s of one request.
    """

    decode_speed: tuple[Annotated[Amount, Field(le=MOST_SPEED)], ...] = ()

    @field_validator("decode_speed", mode="before")
    @classmethod
    def _one_or_more(cls, raw: Any) -> Any:
        return raw if isinstance(raw, list | tuple) else (raw,)


class Budget(Section):
    """What the whole study may cost; it ends at whichever is reached first.

    Attributes:
        trials: Launches, baselines and confirmations included.
        hours: Wall time.
        gpu_hours: Wall time × GPUs.
    """

    trials: Annotated[Positive, Field(le=MOST_TRIALS)] | None = None
    hours: Amount | None = None
    gpu_hours: Amount | None = None

    @model_validator(mode="before")
    @classmethod
    def _bounded(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and not raw:
            return {"trials": DEFAULT_TRIALS}
        return raw
