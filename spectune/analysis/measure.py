"""Turns the requests of a level into figures with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from spectune.analysis.acceptance import context_bucket, position_acceptance, sum_histograms
from spectune.analysis.estimate import Estimate, Floats, batch_means, bootstrap
from spectune.analysis.joint_swings import joint_swings
from spectune.analysis.level_notes import Doubts, the_first
from spectune.analysis.measurement import LevelMeasurement
from spectune.analysis.open_loop import flow
from spectune.analysis.steady import Share, chunk_gaps_s, shares, throughput_batches
from spectune.bench.precision import trend
from spectune.bench.records import RequestRecord
from spectune.counts import count
from spectune.errors import SpectuneError

_SEED = 0  # of every bootstrap: the same requests always give the same intervals
_WINDOW_S = 0.5  # the shortest of the batch means
_ENOUGH = 0.2  # of the requests: fewer with undisturbed tokens are not like the others


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
    decoding = shares(records, measured_s)
    if not decoding:
        raise NothingMeasuredError(_nothing(level, records, failures))
    rows = np.array([_row(share) for share in decoding], dtype=np.float64)
    classes = [share.record.prompt_class for share in decoding]
    contexts = [context_bucket(share.record) for share in decoding]
    accept_length = _accept_length(rows, classes)
    swings = joint_swings(decoding, measured_s)
    decode_speed = swings.widen(bootstrap(lambda sums: sums[..., 0] / sums[..., 1], rows, classes, seed=_SEED))
    cycle_ms = swings.widen(bootstrap(_cycle_ms, rows, classes, seed=_SEED))
    decode_cycle_ms = _decode_cycle(rows, classes)
    gaps_ms = chunk_gaps_s(records, measured_s) * 1000.0
    ttft_ms = _ttft_ms(records, decoding, measured_s)
    sent = sum(share.record.prompt_tokens for share in decoding)
    cached_share = sum(share.record.cached_tokens for share in decoding) / sent if sent else 0.0
    batches = throughput_batches(records, measured_s, _WINDOW_S)
    traffic = flow(records, measured_s)
    doubts = Doubts(
        cycle_ms=cycle_ms.est,
        inter_chunk_ms=float(gaps_ms.mean()),
        cycles_per_chunk=_cycles_per_chunk(decoding),
        failures=failures,
        cached_share=0.0 if shares_prefix else cached_share,
        client_cpu=client_cpu,
        trend=trend(batches) if traffic is None else 0.0,
    )
    return LevelMeasurement(
        level=level,
        n_requests=len(decoding),
        failed=len(failures),
        accept_length=accept_length,
        accept_length_by_class=_by(classes, rows, classes, accept_length),
        per_position=_survival(decoding),
        cycle_ms=cycle_ms.at_least(0.0),
        inter_chunk_ms=doubts.inter_chunk_ms,
        decode_speed=decode_speed.at_least(0.0),
        output_throughput=batch_means(batches).at_least(0.0),
        ttft_p50_ms=float(np.quantile(ttft_ms, 0.5)),
        ttft_p95_ms=float(np.quantile(ttft_ms, 0.95)),
        itl_p50_ms=float(np.quantile(gaps_ms, 0.5)),
        itl_p95_ms=float(np.quantile(gaps_ms, 0.95)),
        prompt_tokens=sent / len(decoding),
        output_tokens=sum(share.record.output_tokens for share in decoding) / len(decoding),
        cached_share=cached_share,
        measured_s=measured_s[1] - measured_s[0],
        client_cpu=client_cpu,
        accept_length_by_context=_by(contexts, rows, classes, accept_length),
        requests_by_class=dict(sorted(Counter(classes).items())),
        requests_by_context={name: contexts.count(name) for name in _in_order(contexts)},
        per_position_by_class={
            name: _survival([share for share in decoding if share.record.prompt_class == name])
            for name in _in_order(classes)
        },
        decode_cycle_ms=None if decode_cycle_ms is None else swings.widen(decode_cycle_ms).at_least(0.0),
        offered_rate=None if traffic is None else traffic.offered_rate,
        achieved_rate=None if traffic is None else traffic.achieved_rate,
        graph_used=graph_used,
        notes=(*doubts.notes(), *(traffic.notes() if traffic else ())),
    )


def _nothing(level: str, records: Sequence[RequestRecord], failures: Sequence[str]) -> str:
    """Say why no request gives a speed."""
    answers = [record for record in records if record.completed]
    if answers and all(len(record.chunks) < 2 for record in answers):
        tokens = sum(record.output_tokens for record in answers) / len(answers)
        return (
            f"{count(len(answers), 'answer')} of level {level} came in one chunk each, with {tokens:.3g} tokens on "
            f"average: between chunks there is no time to measure{the_first(failures)}"
        )
    return f"no request of level {level} was decoding in the steady state{the_first(failures)}"


def _row(share: Share) -> tuple[float, ...]:
    """What a request contributes: the columns that the functions of sums below speak of."""
    return (
        share.tokens, share.seconds, share.verifies, share.correct, share.undisturbed_tokens, share.undisturbed_s
    )  # fmt: skip


def _cycles_per_chunk(decoding: Sequence[Share]) -> float:
    """Cycles that the engine counted, per chunk that came; the first chunk is the prefill's."""
    records = [share.record for share in decoding]
    cycles = sum(r.spec_verify_ct or r.output_tokens - r.chunks[0][1] for r in records)
    return cycles / sum(len(r.chunks) - 1 for r in records)


def _tau(sums: Floats) -> Floats:
    verifies = sums[..., 2]
    return 1.0 + np.divide(sums[..., 3], verifies, out=np.zeros_like(verifies), where=verifies > 0)


def _cycle_ms(sums: Floats) -> Floats:
    """T = τ / decode speed (MEASUREMENT.md), in milliseconds."""
    return 1000.0 * _tau(sums) * sums[..., 1] / sums[..., 0]


def _decode_cycle(rows: Floats, classes: Sequence[str]) -> Estimate | None:
    """T of the undisturbed tokens, over the requests that have any; None where hardly any request has."""
    chosen = [index for index, tokens in enumerate(rows[:, 4]) if tokens > 0]
    if len(chosen) < max(1, _ENOUGH * len(rows)):
        return None
    return bootstrap(
        lambda sums: _cycle_ms(sums[..., [4, 5, 2, 3]]), rows[chosen], [classes[i] for i in chosen], seed=_SEED
    )


def _accept_length(rows: Floats, classes: Sequence[str]) -> Estimate:
    if not rows[:, 2].any():
        return Estimate.exactly(1.0)
    return bootstrap(_tau, rows, classes, seed=_SEED).at_least(1.0)


def _survival(decoding: Sequence[Share]) -> tuple[float, ...]:
    """P(at least i drafted tokens accepted) over all cycles of these requests."""
    return position_acceptance(
        sum_histograms(share.record.spec_correct_drafts_histogram for share in decoding)
    ).survival


def _by(strata: Sequence[str], rows: Floats, classes: Sequence[str], whole: Estimate) -> dict[str, Estimate]:
    """The accept length of each stratum, resampled within the prompt classes it holds."""
    names, found = _in_order(strata), {}
    if len(names) == 1:
        return {names[0]: whole}
    for name in names:
        chosen = [index for index, stratum in enumerate(strata) if stratum == name]
        found[name] = _accept_length(rows[chosen], [classes[index] for index in chosen])
    return found


def _in_order(strata: Sequence[str]) -> list[str]:
    """By the number that a name begins with, where it does, then by name."""
    return sorted(set(strata), key=lambda name: (int(low) if (low := name.partition("-")[0]).isdecimal() else 0, name))


def _ttft_ms(records: Sequence[RequestRecord], decoding: Sequence[Share], measured_s: tuple[float, float]) -> Floats:
    """Of the requests that began to wait in the steady state; where none did, of those that were decoding in it.

    One that was closed before its first token has waited until then at least: to leave it out would flatter.
    """
    inside = [r for r in records if measured_s[0] <= r.began_s < measured_s[1] and not r.failed]
    waited = inside or [share.record for share in decoding]
    firsts = [record.end_s if record.first_token_s is None else record.first_token_s for record in waited]
    return np.array([1000.0 * (first - r.began_s) for first, r in zip(firsts, waited, strict=True)])
