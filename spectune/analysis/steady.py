"""Cuts requests to the steady state of their level."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
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
        first = bisect_left(record.chunks, steady_s[0], key=_time)
        last = bisect_right(record.chunks, steady_s[1], key=_time) - 1
        if last <= first or record.chunks[last][0] <= record.chunks[first][0]:
            continue
        tokens = record.chunks[last][1] - record.chunks[first][1]
        seconds = record.chunks[last][0] - record.chunks[first][0]
        found.append(Share(record, tokens, seconds, record.spec_verify_ct, record.spec_num_correct_drafts))
    return found


def _time(chunk: tuple[float, int]) -> float:
    return chunk[0]


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
    chunks = [np.array(record.chunks) for record in records if record.chunks]
    times = np.concatenate([np.zeros(0), *(each[:, 0] for each in chunks)])
    tokens = np.concatenate([np.zeros(0), *(np.diff(each[:, 1], prepend=0) for each in chunks)])
    length = steady_s[1] - steady_s[0]
    windows = max(1, min(_MOST_BATCHES, int(length / window_s)))
    sums, _ = np.histogram(times, bins=windows, range=steady_s, weights=tokens)
    return [float(total) * windows / length for total in sums]
