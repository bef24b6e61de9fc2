"""What a launched server really runs, to be held against what was asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spectune.engines.sglang.server_log.facts import GraphKind, ServerFacts
from spectune.typed_json import objects_of, whole_number

_BACKENDS = (
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
    "speculative_draft_attention_backend",
)


@dataclass(frozen=True, slots=True)
class GraphUse:
    """Decode lines of one batch size.

    Attributes:
        in_graph: Intervals whose last step ran in a graph.
        eager: Intervals whose last step did not.
    """

    in_graph: int
    eager: int

    @property
    def always(self) -> bool:
        """Whether every step seen ran in a graph."""
        return self.eager == 0


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Effective state of a launch.

    Attributes:
        graph_batches: Captured batch sizes by kind; a kind that was not captured is absent.
        kv_tokens: Tokens the KV cache holds.
        max_running_requests: Requests that may run at once, per data-parallel rank.
        backends: Attention backends by SGLang's field names, as resolved.
        rewritten: SGLang's own sentences on what it chose or overrode.
    """

    graph_batches: Mapping[GraphKind, tuple[int, ...]] = field(default_factory=dict)
    kv_tokens: int | None = None
    max_running_requests: int | None = None
    backends: Mapping[str, str] = field(default_factory=dict)
    rewritten: tuple[str, ...] = ()


def read_back(facts: ServerFacts, server_info: Mapping[str, Any]) -> ReadBack:
    """Return what a launch really runs; what the server says of itself goes before what its log says.

    Args:
        facts: Of its log.
        server_info: Answer of `/server_info`; may be empty.
    """
    first = next(iter(objects_of(server_info.get("internal_states"))), {})
    kv_tokens = whole_number(server_info.get("max_total_num_tokens"))
    running = whole_number(first.get("effective_max_running_requests_per_dp"))
    arguments = {**facts.arguments, **server_info}
    batches = {kind: capture.batches for kind, capture in facts.captures.items() if capture.finished}
    told = first.get("decode_cuda_graph_bs")
    if isinstance(told, list):
        kind: GraphKind = "verify" if facts.speculative else "decode"
        batches[kind] = tuple(sorted(int(one) for one in told if isinstance(one, int)))
        if not batches[kind]:
            del batches[kind]
    return ReadBack(
        graph_batches=batches,
        kv_tokens=facts.kv_tokens if kv_tokens is None else kv_tokens,
        max_running_requests=facts.max_running_requests if running is None else running,
        backends={name: str(arguments[name]) for name in _BACKENDS if arguments.get(name) not in (None, "")},
        rewritten=facts.rewritten,
    )


def graphs_used(facts: ServerFacts, begin_s: float | None = None, end_s: float | None = None) -> Mapping[int, GraphUse]:
    """Return by batch size which decode steps ran in graphs, such as during one level.

    The line speaks of the target's step: with speculation the verify. Drafts run in graphs of their own, which the
    log only shows as captured. The first interval of a rank is left out, it is the engine's own warm-up.

    Args:
        facts: Of the log.
        begin_s: Only intervals logged from here on, seconds since the epoch; SGLang logs whole seconds.
        end_s: And up to here.
    """
    counts: dict[int, list[int]] = {}
    for interval in facts.decode:
        if interval.first or interval.in_graph is None or not _within(interval.time_s, begin_s, end_s):
            continue
        counts.setdefault(interval.running, [0, 0])[not interval.in_graph] += 1
    return {running: GraphUse(*counted) for running, counted in sorted(counts.items())}


def _within(time_s: float | None, begin_s: float | None, end_s: float | None) -> bool:
    if time_s is None:
        return begin_s is None and end_s is None
    return (begin_s is None or time_s >= int(begin_s)) and (end_s is None or time_s <= end_s)
