"""The figures candidates can be ranked and bounded by, each with its direction and unit: the only such list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spectune.space.names import hint

Direction = Literal["maximize", "minimize"]


@dataclass(frozen=True)
class Metric:
    """One measured figure of a level.

    Attributes:
        name: As in files and reports; the unit stands in it where it is not tok/s.
        direction: Which way is better.
        unit: For people.
        meaning: One line for people.
    """

    name: str
    direction: Direction
    unit: str
    meaning: str

    @property
    def words(self) -> str:
        """The name as people say it."""
        return self.name.removesuffix("_ms").replace("_", " ")


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("decode_speed", "maximize", "tok/s", "tokens one request sees per second while decoding"),
        Metric("output_throughput", "maximize", "tok/s", "tokens of all requests per second in steady state"),
        Metric("ttft_p50_ms", "minimize", "ms", "time to first token, median"),
        Metric("ttft_p95_ms", "minimize", "ms", "time to first token, 95th percentile"),
        Metric("itl_p95_ms", "minimize", "ms", "time between tokens, 95th percentile"),
        Metric("cycle_ms", "minimize", "ms", "one draft and verify cycle"),
    )
}

PERCENTILES = frozenset({"ttft_p50_ms", "ttft_p95_ms", "itl_p95_ms"})
"""Those of which a level says nothing but the figure: no interval tells when it was measured long enough."""

_NOT_RANKABLE = {
    "accept_rate": "accept_rate falls when more tokens are drafted, even where that is faster, and engines define it "
    "differently; use decode_speed",
    "accept_length": "accept_length leaves out what a cycle costs, so the longest may be the slowest; use decode_speed",
}


def metric_problem(name: str) -> str | None:
    """Return why `name` is no metric to rank or bound by, or None."""
    if name in METRICS:
        return None
    if name in _NOT_RANKABLE:
        return f"'{name}' is not something to choose by: {_NOT_RANKABLE[name]}"
    return f"'{name}' is not a metric{hint(name, METRICS)}"
