"""Cuts requests to the steady state of their level."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spectune.analysis.estimate import Floats
from spectune.bench.meter import MOST_BATCHES, chunks_of
from spectune.bench.records import RequestRecord

Chunks = tuple[tuple[float, int], ...]

_NOTHING_S = 1e-6  # rounding; a request that is sent as another's last chunk arrives has not waited yet


@dataclass(frozen=True, slots=True)
class Share:
    """What one request did in the steady state.

    Attributes:
        record: The request.
        chunks: Its chunks in the steady state.
        tokens: Tokens decoded in it, those of the first chunk excluded: they belong to the prefill. Those of the end
            are left out, too, where speculation may have been broken off inside a cycle.
        seconds: Time it was decoding in it.
        undisturbed_tokens: Those of the tokens that came while no other request was waiting for its first token.
        undisturbed_s: The time between chunks in which they came.
        verifies: Verify passes of the request, in proportion to its chunks in the steady state. Whole requests would
            not do: those that take long reach into it more often, and they are the ones of which little is accepted.
        correct: Accepted drafts, likewise.
    """

    record: RequestRecord
    chunks: Chunks
    tokens: int
    seconds: float
    undisturbed_tokens: int
    undisturbed_s: float
    verifies: float
    correct: float


def shares(records: Sequence[RequestRecord], steady_s: tuple[float, float]) -> list[Share]:
    """The requests with at least one whole gap between two chunks in the steady state, cut to it at chunks.

    `records` are all of the level: while any of them waits for its first token, the engine may be busy with its prompt,
    and then every request that is decoding stands still.

    An answer ends inside a cycle, and nobody gets the other tokens of it. So each is cut at the first chunk after which
    less than a whole cycle of tokens is left: such a first passage has as many tokens for its cycles as an endless
    answer (Wald's equation), while leaving out just the last chunk would favour short cycles (the inspection paradox).
    """
    waits, most = _Waits(records), _most_tokens(records)
    found: list[Share] = []
    for record in records:
        first = bisect_left(record.chunks, steady_s[0], key=_time)
        last = bisect_right(record.chunks, steady_s[1], key=_time)
        inside = record.chunks[first : min(last, _whole_cycles(record.chunks, most))]
        if not record.completed or len(inside) < 2 or inside[-1][0] <= inside[0][0]:
            continue
        times, tokens = np.array(inside, dtype=np.float64).T
        gaps, new = np.diff(times), np.diff(tokens)
        part = len(gaps) / (len(record.chunks) - 1)
        alone = waits.within(times[:-1], times[1:]) < _NOTHING_S
        found.append(
            Share(
                record=record,
                chunks=inside,
                tokens=inside[-1][1] - inside[0][1],
                seconds=inside[-1][0] - inside[0][0],
                undisturbed_tokens=int(new[alone].sum()),
                undisturbed_s=float(gaps[alone].sum()),
                verifies=part * record.spec_verify_ct,
                correct=part * record.spec_num_correct_drafts,
            )
        )
    return found


def too_short(records: Sequence[RequestRecord]) -> bool:
    """Whether there are answers, and none of them has a whole cycle between two chunks."""
    answers, most = [record for record in records if record.completed], _most_tokens(records)
    return bool(answers) and all(_whole_cycles(record.chunks, most) < 2 for record in answers)


def _most_tokens(records: Sequence[RequestRecord]) -> int:
    """How many tokens a cycle gives at most, 0 without speculation."""
    return max((len(record.spec_correct_drafts_histogram) for record in records), default=0)


def _whole_cycles(chunks: Chunks, most: int) -> int:
    """How many chunks to keep so that none was cut short, where a cycle gives `most` tokens at most."""
    return bisect_left(chunks, chunks[-1][1] - most + 1, key=_tokens) + 1 if most and chunks else len(chunks)


def _time(chunk: tuple[float, int]) -> float:
    return chunk[0]


def _tokens(chunk: tuple[float, int]) -> int:
    return chunk[1]


class _Waits:
    """The times in which at least one request was waiting for its first token."""

    def __init__(self, records: Sequence[RequestRecord]) -> None:
        ends: list[float] = []
        starts: list[float] = []
        for start_s, end_s in sorted(
            (record.sent_s, record.end_s if record.first_token_s is None else record.first_token_s)
            for record in records
        ):
            if ends and start_s <= ends[-1]:
                ends[-1] = max(ends[-1], end_s)
            else:
                starts.append(start_s)
                ends.append(end_s)
        self._times = np.array([starts, ends]).T.ravel()
        self._waited = np.repeat(np.cumsum(np.subtract(ends, starts)), 2)
        self._waited[::2] -= np.subtract(ends, starts)

    def within(self, begin_s: Floats, end_s: Floats) -> Floats:
        """Seconds of waiting between each of these pairs of times."""
        until = np.interp(end_s, self._times, self._waited)
        waited: Floats = until - np.interp(begin_s, self._times, self._waited)
        return waited


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
    times, tokens = chunks_of(records)
    length = steady_s[1] - steady_s[0]
    windows = max(1, min(MOST_BATCHES, int(length / window_s)))
    sums, _ = np.histogram(times, bins=windows, range=steady_s, weights=tokens)
    return [float(total) * windows / length for total in sums]
