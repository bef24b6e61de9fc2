"""What one launch was measured to do at one level."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from spectune.analysis.estimate import Estimate
from spectune.typed_json import require_types

_ESTIMATES = ("accept_length", "cycle_ms", "decode_cycle_ms", "decode_speed", "output_throughput")
_MOST = 1e12  # of anything; more is damage, and overflows further on
_NEVER_ZERO = {"accept_length", "cycle_ms", "decode_cycle_ms"}
_GROUPS = {"accept_length_by_class", "accept_length_by_context"}


@dataclass(frozen=True, slots=True)
class LevelMeasurement:
    """One launch at one level. All estimates are of this launch alone: launches differ by more.

    Attributes:
        level: Name of the load point, as c8.
        n_requests: Requests that ended well and were decoding in the steady state.
        failed: Requests of the whole level that failed.
        accept_length: 1 + Σ correct drafts / Σ verifies of those requests, each as far as it was in the steady state.
        accept_length_by_class: The same per prompt class.
        accept_length_by_context: The same per range of context lengths, "256-511" tokens of prompt + answer / 2.
        requests_by_class: How many requests each class has.
        requests_by_context: How many each range has.
        per_position: P(at least i drafted tokens accepted), i from 1.
        per_position_by_class: The same per prompt class.
        cycle_ms: accept_length / decode_speed: one draft+verify cycle, or one plain step without speculation, with the
            standstills while other requests' prompts are prefilled: what a user sees, and what a break-even is made of.
        decode_cycle_ms: The same without them, over the gaps in which no request waited for its first token; None
            where somebody always waits.
        inter_chunk_ms: Mean time between two streamed chunks: the cycle by an independent route.
        decode_speed: Tokens per second one request sees while decoding, time to first token excluded.
        output_throughput: Tokens per second of all requests in the steady state.
        ttft_p50_ms: Median time to first token; in an open loop it counts from when the request was due.
        ttft_p95_ms: 95th percentile of it.
        itl_p50_ms: Median time between two chunks of one request: what a reader waits.
        itl_p95_ms: 95th percentile of it.
        prompt_tokens: Mean per request.
        output_tokens: Mean per request.
        cached_share: Prompt tokens answered from the prefix cache, of all.
        measured_s: Length of the steady state.
        client_cpu: Share of a core this client used.
        offered_rate: Requests per second that arrived; None in a closed loop.
        achieved_rate: Requests per second that ended; None in a closed loop.
        graph_used: Whether decoding ran in a captured graph, as the engine's log says; None if it does not.
        notes: What a reader should know before believing the figures, in sentences.
    """

    level: str
    n_requests: int
    failed: int
    accept_length: Estimate
    accept_length_by_class: dict[str, Estimate]
    per_position: tuple[float, ...]
    cycle_ms: Estimate
    inter_chunk_ms: float
    decode_speed: Estimate
    output_throughput: Estimate
    ttft_p50_ms: float
    ttft_p95_ms: float
    itl_p50_ms: float
    itl_p95_ms: float
    prompt_tokens: float
    output_tokens: float
    cached_share: float
    measured_s: float
    client_cpu: float
    accept_length_by_context: dict[str, Estimate] = field(default_factory=dict)
    requests_by_class: dict[str, int] = field(default_factory=dict)
    requests_by_context: dict[str, int] = field(default_factory=dict)
    per_position_by_class: dict[str, tuple[float, ...]] = field(default_factory=dict)
    decode_cycle_ms: Estimate | None = None
    offered_rate: float | None = None
    achieved_rate: float | None = None
    graph_used: bool | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """An entry of `levels` in `result.json`; estimates as [est, lo, hi]."""
        data = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        data |= {name: None if data[name] is None else data[name].to_json() for name in _ESTIMATES}
        data |= {group: {name: e.to_json() for name, e in data[group].items()} for group in _GROUPS}
        data["per_position_by_class"] = {name: list(own) for name, own in self.per_position_by_class.items()}
        return data | {"per_position": list(self.per_position), "notes": list(self.notes)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LevelMeasurement:
        """Read what `to_json` wrote; keys of newer versions are left alone, those older ones lack take their defaults.

        Raises:
            KeyError, ValueError, TypeError: If it is not such an entry.
        """
        known = {entry.name: data[entry.name] for entry in fields(cls) if entry.name in data or _needed(entry)}
        known |= {name: Estimate.from_json(data[name]) for name in _ESTIMATES if known.get(name) is not None}
        for group in _GROUPS & known.keys():
            known[group] = {name: Estimate.from_json(value) for name, value in data[group].items()}
        known |= {"per_position": tuple(data["per_position"]), "notes": tuple(data["notes"])}
        by_class = data.get("per_position_by_class", {})
        known |= {"per_position_by_class": {name: tuple(own) for name, own in by_class.items()}}
        return require_types(cls(**known)).possible()

    def possible(self) -> LevelMeasurement:
        """Return itself if its figures can be.

        Raises:
            ValueError: A figure is negative or endless, or an accept length or a cycle is nothing.
        """
        figures = {name: getattr(self, name) for name in self.__slots__}
        for name, value in figures.items():
            figure = value.est if isinstance(value, Estimate) else value
            least = 1e-12 if name in _NEVER_ZERO else 0
            if isinstance(figure, int | float) and not least <= figure <= _MOST:
                raise ValueError(f"{name} cannot be {figure:g}")
        return self


def _needed(entry: Field[Any]) -> bool:
    return entry.default is MISSING and entry.default_factory is MISSING
