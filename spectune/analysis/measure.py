"""Turns the requests of a level into figures with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spectune.analysis.decoding import Decoding, sizes
from spectune.analysis.estimate import Floats, batch_means
from spectune.analysis.joint_swings import joint_swings
from spectune.analysis.level_notes import Doubts, the_first
from spectune.analysis.measurement import LevelMeasurement
from spectune.analysis.open_loop import flow
from spectune.analysis.steady import Share, chunk_gaps_s, shares, throughput_batches, too_short
from spectune.bench.precision import trend
from spectune.bench.records import RequestRecord
from spectune.counts import count
from spectune.errors import SpectuneError

_WINDOW_S = 0.5  # the shortest of the batch means


class NothingMeasuredError(SpectuneError):
    """No request gave a speed; the message says what the requests died of."""


def measure_level(
    level: str,
    records: Sequence[RequestRecord],
    measured_s: tuple[float, float] | None,
    *,
    client_cpu: float = 0.0,
    graph_used: bool | None = None,
    shares_prefix: bool = False,
) -> LevelMeasurement:
    """Turn the requests of a level into figures.

    Only what happened in the steady state counts, also of requests that began before or ended after it. The engine's
    counters are those of whole requests; they count in proportion to the chunks that came in it.

    Args:
        level: Name of the load point.
        records: All requests of the level.
        measured_s: Start and end of the steady state, seconds since the level's start.
        client_cpu: Share of a core the client used.
        graph_used: What the engine's log says.
        shares_prefix: Whether the workload gives its prompts a common beginning, which is then cached on purpose.

    Raises:
        NothingMeasuredError: If there is no steady state, or no request ended well in it.
    """
    failures = [record.error for record in records if record.error is not None]
    if measured_s is None or measured_s[1] <= measured_s[0]:
        raise NothingMeasuredError(f"level {level} never got out of its warm-up{the_first(failures)}")
    found = shares(records, measured_s)
    if not found:
        raise NothingMeasuredError(_nothing(level, records, failures))
    decoding, swings = Decoding(found), joint_swings(found, measured_s)
    cycle_ms, decode_cycle_ms = swings.widen(decoding.cycle_ms()), decoding.decode_cycle_ms()
    gaps_ms = chunk_gaps_s(records, measured_s) * 1000.0
    ttft_ms = _ttft_ms(records, found, measured_s)
    sent = sum(share.record.prompt_tokens for share in found)
    cached_share = sum(share.record.cached_tokens for share in found) / sent if sent else 0.0
    batches = throughput_batches(records, measured_s, _WINDOW_S)
    traffic = flow(records, measured_s)
    doubts = Doubts(
        cycle_ms=cycle_ms.est,
        inter_chunk_ms=float(gaps_ms.mean()),
        cycles_per_chunk=decoding.cycles_per_chunk(),
        failures=failures,
        cached_share=0.0 if shares_prefix else cached_share,
        client_cpu=client_cpu,
        trend=trend(batches) if traffic is None else 0.0,
    )
    return LevelMeasurement(
        level=level,
        n_requests=len(found),
        failed=len(failures),
        accept_length=decoding.accept_length,
        accept_length_by_class=decoding.accept_length_by(decoding.classes),
        per_position=decoding.per_position(),
        cycle_ms=cycle_ms.at_least(0.0),
        inter_chunk_ms=doubts.inter_chunk_ms,
        decode_speed=swings.widen(decoding.decode_speed()).at_least(0.0),
        output_throughput=batch_means(batches).at_least(0.0),
        ttft_p50_ms=float(np.quantile(ttft_ms, 0.5)),
        ttft_p95_ms=float(np.quantile(ttft_ms, 0.95)),
        itl_p50_ms=float(np.quantile(gaps_ms, 0.5)),
        itl_p95_ms=float(np.quantile(gaps_ms, 0.95)),
        prompt_tokens=sent / len(found),
        output_tokens=sum(share.record.output_tokens for share in found) / len(found),
        cached_share=cached_share,
        measured_s=measured_s[1] - measured_s[0],
        client_cpu=client_cpu,
        accept_length_by_context=decoding.accept_length_by(decoding.contexts),
        requests_by_class=sizes(decoding.classes),
        requests_by_context=sizes(decoding.contexts),
        per_position_by_class=decoding.per_position_by_class(),
        decode_cycle_ms=None if decode_cycle_ms is None else swings.widen(decode_cycle_ms).at_least(0.0),
        offered_rate=None if traffic is None else traffic.offered_rate,
        achieved_rate=None if traffic is None else traffic.achieved_rate,
        graph_used=graph_used,
        notes=(*doubts.notes(), *(traffic.notes() if traffic else ())),
    )


def _nothing(level: str, records: Sequence[RequestRecord], failures: Sequence[str]) -> str:
    """Say why no request gives a speed."""
    if too_short(records):
        answers = [record for record in records if record.completed]
        tokens = sum(record.output_tokens for record in answers) / len(answers)
        return (
            f"{count(len(answers), 'answer')} of level {level} ended within a cycle or came in one chunk, with "
            f"{tokens:.3g} tokens on average: between chunks there is no time to measure; ask for longer answers "
            f"(output_tokens){the_first(failures)}"
        )
    return f"no request of level {level} was decoding in the steady state{the_first(failures)}"


def _ttft_ms(records: Sequence[RequestRecord], decoding: Sequence[Share], measured_s: tuple[float, float]) -> Floats:
    """Of the requests that began to wait in the steady state; where none did, of those that were decoding in it.

    One that was closed before its first token has waited until then at least: to leave it out would flatter.
    """
    inside = [r for r in records if measured_s[0] <= r.began_s < measured_s[1] and not r.failed]
    waited = inside or [share.record for share in decoding]
    firsts = [record.end_s if record.first_token_s is None else record.first_token_s for record in waited]
    return np.array([1000.0 * (first - r.began_s) for first, r in zip(firsts, waited, strict=True)])
