"""Load points: requests kept in flight, or requests that arrive by the clock."""

from __future__ import annotations

import math
from typing import Annotated, Self

from pydantic import Field, model_validator

from spectune.space.sections import Amount, Positive, Section

MOST_CONCURRENCY = 4096
MOST_RATE = 10_000.0
SLOWEST_BORNE = 20.0
"""tok/s of one request. How many requests of an open loop are under way is not known beforehand. Little's law says rate
times the time of one request, and nobody bears an engine for long on which that is more than at this speed."""


class Level(Section):
    """One load point; exactly one of the three is given.

    Attributes:
        concurrency: Requests kept in flight; closed loop.
        rate: Requests per second that arrive at random (Poisson), whatever the engine does; open loop.
        trace: Arrivals at the timestamps of the prompt file, so many times as fast as recorded; open loop.
    """

    concurrency: Annotated[Positive, Field(le=MOST_CONCURRENCY)] | None = None
    rate: Annotated[Amount, Field(le=MOST_RATE)] | None = None
    trace: Annotated[Amount, Field(le=MOST_RATE)] | None = None

    @model_validator(mode="after")
    def _one_load(self) -> Self:
        if sum(given is not None for given in (self.concurrency, self.rate, self.trace)) != 1:
            raise ValueError("a level has exactly one of {concurrency: N}, {rate: N per second} and {trace: speed}")
        return self

    @property
    def open_loop(self) -> bool:
        """Whether requests arrive by the clock."""
        return self.concurrency is None

    @property
    def name(self) -> str:
        """`c8` for eight concurrent requests, `r2.5` for 2.5 per second, `t1` for a trace as recorded."""
        if self.concurrency is not None:
            return f"c{self.concurrency}"
        return f"r{self.rate:g}" if self.rate is not None else f"t{self.trace:g}"

    @property
    def file_name(self) -> str:
        """Of its requests within a trial's folder; `level-c008.jsonl` sorts by concurrency."""
        return f"level-c{self.concurrency:03d}.jsonl" if self.concurrency is not None else f"level-{self.name}.jsonl"

    def in_flight(self, output_tokens: int) -> int | None:
        """Requests under way at most: exact in a closed loop, assumed for a rate, None for a trace, not known here.

        Args:
            output_tokens: Most tokens a request may generate.
        """
        if self.rate is None:
            return self.concurrency
        return min(MOST_CONCURRENCY, math.ceil(self.rate * output_tokens / SLOWEST_BORNE))
