"""Cuts requests to the steady state of their level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spectune.analysis.estimate import Floats
from spectune.bench.records import RequestRecord

_MOST_BATCHES = 20


@dataclass(frozen=True, slots=True)
class Share:
    """What one request did in the steady state.

    Attributes:
        record: The request.
        tokens: Tokens decoded in it, those of the first chunk excluded: they belong to the prefill.
        seconds: Time it was decoding in it.
        verifies: Verify passes of the whole request.
        correct: Accepted drafts of the whole request.
    """

    record: RequestRecord
    tokens: int
    seconds: float
    verifies: int
    correct: int


def shares(records: Sequence[RequestRecord], steady_s: tuple[float, float]) -> list[Share]:
    """The requests with at least one whole gap between two chunks in the steady state, cut to it at chunks."""
    found: list[Share] = []
    for record in records:
        inside = [chunk for chunk in record.chunks if steady_s[0] <= chunk[0] <= steady_s[1]]
        if len(inside) < 2 or inside[-1][0] <= inside[0][0]:
            continue
        tokens, seconds = inside[-1][1] - inside[0][1], inside[-1][0] - inside[0][0]
        found.append(Share(record, tokens, seconds, record.spec_verify_ct, record.spec_num_correct_drafts))
    return found


def chunk_gaps_s(records: Sequence[RequestRecord], steady_s: tuple[float, float]) -> Floats:
    """Seconds between consecutive chunks of one request, both in the steady state."""
    gaps = [np.zeros(0)]
    for record in records:
        times = np.array([time for time, _ in record.chunks])
        gaps.append(np.diff(times[(times >= steady_s[0]) & (times <= steady_s[1])]))
    return np.concatenate(gaps)


def throughput_batches(records: Sequence[RequestRecord], steady_s: tuple[float, float], window_s: float) -> list[float]:
    """Tokens per second of all requests together in at most 20 equally long windows, each at least `window_s` long.

    Failed requests count too: the engine spent its time on their tokens. A steady state shorter than a window is one
    window.
    """
    times: list[float] = []
    tokens: list[int] = []
    for record in records:
        before = 0
        for time, total in record.chunks:
            times.append(time)
            tokens.append(total - before)
            before = total
    length = steady_s[1] - steady_s[0]
    windows = max(1, min(_MOST_BATCHES, int(length / window_s)))
    sums, _ = np.histogram(times, bins=windows, range=steady_s, weights=tokens)
    return [float(total) * windows / length for total in sums]
