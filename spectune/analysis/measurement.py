"""What a level's requests say about a configuration, with intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectune.analysis.acceptance import position_acceptance, sum_histograms
from spectune.analysis.estimate import Estimate, Floats, batch_means, bootstrap
from spectune.analysis.open_loop import flow
from spectune.analysis.steady import Share, chunk_gaps_s, shares, throughput_batches
from spectune.bench.records import RequestRecord
from spectune.errors import SpectuneError

ROUTES_DISAGREE = 0.05
"""Cycle times by two routes further apart than this are reported (MEASUREMENT.md, Definitions)."""
CLIENT_IS_BUSY = 0.7
"""Share of a core above which the client may be what is measured (MEASUREMENT.md, 13)."""

_ESTIMATES = ("accept_length", "cycle_ms", "decode_speed", "output_throughput")


class NothingMeasuredError(SpectuneError):
    """No request gave a speed; the message says what the requests died of."""


@dataclass(frozen=True, slots=True)
class LevelMeasurement:
    """One launch at one level. All estimates are of this launch alone: launches differ by more.

    Attributes:
        level: Name of the load point, as c8.
        n_requests: Requests that ended well and were decoding in the steady state.
        failed: Requests of the whole level that failed.
        accept_length: 1 + Σ correct drafts / Σ verifies of those requests.
        accept_length_by_class: The same per prompt class.
        per_position: P(at least i drafted tokens accepted), i from 1.
        cycle_ms: accept_length / decode_speed: one draft+verify cycle, or one plain step without speculation.
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
    offered_rate: float | None = None
    achieved_rate: float | None = None
    graph_used: bool | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """An entry of `levels` in `result.json`; estimates as [est, lo, hi]."""
        data = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        data |= {name: data[name].to_json() for name in _ESTIMATES}
        data["accept_length_by_class"] = {name: e.to_json() for name, e in self.accept_length_by_class.items()}
        return data | {"per_position": list(self.per_position), "notes": list(self.notes)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LevelMeasurement:
        """Read what `to_json` wrote; keys of newer versions are left alone, those older ones lack take their defaults.

        Raises:
            KeyError, ValueError, TypeError: If it is not such an entry.
        """
        fields = dataclasses.fields(cls)
        known = {f.name: data[f.name] for f in fields if f.name in data or f.default is dataclasses.MISSING}
        known |= {name: Estimate.from_json(data[name]) for name in _ESTIMATES}
        classes = data["accept_length_by_class"].items()
        known["accept_length_by_class"] = {name: Estimate.from_json(value) for name, value in classes}
        known |= {"per_position": tuple(data["per_position"]), "notes": tuple(data["notes"])}
        return cls(**known)


def measure_level(
    level: str,
    records: Sequence[RequestRecord],
    measured_s: tuple[float, float] | None,
    *,
    window_s: float = 0.5,
    client_cpu: float = 0.0,
    graph_used: bool | None = None,
    shares_prefix: bool = False,
    seed: int = 0,
) -> LevelMeasurement:
    """Turn the requests of a level into figures.

    Speeds count only what happened in the steady state, also of requests that began before or ended after it. The
    accept length counts all of every request that was decoding in it, because the engine's counters cannot be cut.

    Args:
        level: Name of the load point.
        records: All requests of the level.
        measured_s: Start and end of the steady state, seconds since the level's start.
        window_s: Shortest window of the batch means.
        client_cpu: Share of a core the client used.
        graph_used: What the engine's log says.
        shares_prefix: Whether the workload gives its prompts a common beginning, which is then cached on purpose.
        seed: Of the bootstrap.

    Raises:
        NothingMeasuredError: If there is no steady state, or no request ended well in it.
    """
    failures = [record.error for record in records if record.error is not None]
    if measured_s is None or measured_s[1] <= measured_s[0]:
        raise NothingMeasuredError(f"level {level} never got out of its warm-up{_first(failures)}")
    decoding = shares([record for record in records if record.completed], measured_s)
    if not decoding:
        raise NothingMeasuredError(f"no request of level {level} was decoding in the steady state{_first(failures)}")
    rows = np.array([[s.tokens, s.seconds, s.verifies, s.correct] for s in decoding], dtype=np.float64)
    classes = [share.record.prompt_class for share in decoding]
    accept_length = _accept_length(rows, classes, seed)
    decode_speed = bootstrap(lambda sums: sums[..., 0] / sums[..., 1], rows, classes, seed=seed)
    cycle_ms = bootstrap(_cycle_ms, rows, classes, seed=seed)
    gaps_ms = chunk_gaps_s(records, measured_s) * 1000.0
    ttft_ms = _ttft_ms(records, decoding, measured_s)
    sent = sum(share.record.prompt_tokens for share in decoding)
    cached_share = sum(share.record.cached_tokens for share in decoding) / sent if sent else 0.0
    inter_chunk_ms = float(gaps_ms.mean())
    notes = _notes(cycle_ms.est, inter_chunk_ms, failures, 0.0 if shares_prefix else cached_share, client_cpu)
    traffic = flow(records, measured_s)
    return LevelMeasurement(
        level=level,
        n_requests=len(decoding),
        failed=len(failures),
        accept_length=accept_length,
        accept_length_by_class=_by_class(rows, classes, seed),
        per_position=position_acceptance(
            sum_histograms(share.record.spec_correct_drafts_histogram for share in decoding)
        ).survival,
        cycle_ms=cycle_ms,
        inter_chunk_ms=inter_chunk_ms,
        decode_speed=decode_speed,
        output_throughput=batch_means(throughput_batches(records, measured_s, window_s)),
        ttft_p50_ms=float(np.quantile(ttft_ms, 0.5)),
        ttft_p95_ms=float(np.quantile(ttft_ms, 0.95)),
        itl_p50_ms=float(np.quantile(gaps_ms, 0.5)),
        itl_p95_ms=float(np.quantile(gaps_ms, 0.95)),
        prompt_tokens=sent / len(decoding),
        output_tokens=sum(share.record.output_tokens for share in decoding) / len(decoding),
        cached_share=cached_share,
        measured_s=measured_s[1] - measured_s[0],
        client_cpu=client_cpu,
        offered_rate=None if traffic is None else traffic.offered_rate,
        achieved_rate=None if traffic is None else traffic.achieved_rate,
        graph_used=graph_used,
        notes=(*notes, *(traffic.notes() if traffic else ())),
    )


def _tau(sums: Floats) -> Floats:
    verifies = sums[..., 2]
    return 1.0 + np.divide(sums[..., 3], verifies, out=np.zeros_like(verifies), where=verifies > 0)


def _cycle_ms(sums: Floats) -> Floats:
    """T = τ / decode speed (MEASUREMENT.md), in milliseconds."""
    return 1000.0 * _tau(sums) * sums[..., 1] / sums[..., 0]


def _accept_length(rows: Floats, classes: Sequence[str], seed: int) -> Estimate:
    if not rows[:, 2].any():
        return Estimate.exactly(1.0)
    return bootstrap(_tau, rows, classes, seed=seed)


def _by_class(rows: Floats, classes: Sequence[str], seed: int) -> dict[str, Estimate]:
    labels = np.asarray(classes)
    groups = {name: rows[labels == name] for name in sorted(set(classes))}
    return {name: _accept_length(group, [name] * len(group), seed) for name, group in groups.items()}


def _ttft_ms(records: Sequence[RequestRecord], decoding: Sequence[Share], measured_s: tuple[float, float]) -> Floats:
    """Of the requests that began to wait in the steady state; where none did, of those that were decoding in it.

    One that was closed before its first token has waited until then at least: to leave it out would flatter.
    """
    inside = [r for r in records if measured_s[0] <= r.began_s < measured_s[1] and not r.failed]
    waited = inside or [share.record for share in decoding]
    firsts = [record.end_s if record.first_token_s is None else record.first_token_s for record in waited]
    return np.array([1000.0 * (first - r.began_s) for first, r in zip(firsts, waited, strict=True)])


def _notes(
    cycle_ms: float, inter_chunk_ms: float, failures: Sequence[str], cached_share: float, client_cpu: float
) -> tuple[str, ...]:
    notes: list[str] = []
    if failures:
        notes.append(f"{len(failures)} requests failed{_first(failures)}")
    if abs(inter_chunk_ms / cycle_ms - 1.0) > ROUTES_DISAGREE:
        notes.append(
            f"two routes to the cycle time disagree: accept length / decode speed gives {cycle_ms:.2f} ms, "
            f"the time between chunks {inter_chunk_ms:.2f} ms"
        )
    if cached_share > 0.5:
        notes.append(
            f"{cached_share:.0%} of the prompt tokens came from the prefix cache: they share text or came before"
        )
    if client_cpu > CLIENT_IS_BUSY:
        notes.append(f"the client used {client_cpu:.0%} of a core: it may be what limits the throughput")
    return tuple(notes)


def _first(failures: Sequence[str]) -> str:
    return f"; the first: {failures[0]}" if failures else ""
