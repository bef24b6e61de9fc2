"""Counts tokens as they arrive and says when the rate is steady and known well enough."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from spectune.bench.precision import relative_half_width, relative_half_width_of_ratio
from spectune.bench.records import RequestRecord

_BIN_S = 0.05
_MOST_BATCHES = 20


class TokenMeter:
    """Token and chunk arrivals of a level in bins of 50 ms; constant work per chunk."""

    def __init__(self) -> None:
        self.last_s = 0.0
        self.tokens = 0
        self._token_bins: list[int] = []
        self._chunk_bins: list[int] = []

    def add(self, time_s: float, tokens: int) -> None:
        """A chunk with so many new tokens arrived, seconds since the level's start."""
        index = int(time_s / _BIN_S)
        missing = index + 1 - len(self._token_bins)
        if missing > 0:
            self._token_bins.extend([0] * missing)
            self._chunk_bins.extend([0] * missing)
        self._token_bins[index] += tokens
        self._chunk_bins[index] += 1
        self.tokens += tokens
        self.last_s = max(self.last_s, time_s)

    def add_all(self, times_s: npt.NDArray[np.float64], tokens: npt.NDArray[np.int64]) -> None:
        """Many chunks at once, in any order."""
        bins = (times_s / _BIN_S).astype(np.int64)
        self._token_bins = _summed(self._token_bins, np.bincount(bins, weights=tokens).astype(np.int64).tolist())
        self._chunk_bins = _summed(self._chunk_bins, np.bincount(bins).tolist())
        self.tokens += int(tokens.sum())
        self.last_s = max(self.last_s, float(times_s.max()))

    def rate(self, start_s: float, end_s: float) -> float:
        """Tokens per second between two times, whole bins only; 0.0 when they span none."""
        first, last = _bins(start_s, end_s)
        return sum(self._token_bins[first:last]) / ((last - first) * _BIN_S) if last > first else 0.0

    def batches(self, start_s: float, end_s: float, window_s: float) -> list[float]:
        """Tokens per second of at most 20 equally long windows, each at least `window_s` long.

        Windows grow with the measurement, so that they stay nearly independent of each other (batch means).
        """
        first, last = _bins(start_s, end_s)
        count = min(_MOST_BATCHES, int((last - first) * _BIN_S / window_s + 1e-9))
        if count < 1:
            return []
        width = (last - first) // count
        # What does not fill a window is left out at the beginning, which is nearest to the warm-up.
        edges = range(last - width * count, last, width)
        return [sum(self._token_bins[edge : edge + width]) / (width * _BIN_S) for edge in edges]

    def steady(self, now_s: float, window_s: float, tolerance: float) -> bool:
        """Whether the last two windows agree in chunks per second.

        Chunks, not tokens: a cycle takes equally long whatever was accepted, so that a prompt that is easy to draft
        does not look like an engine that is still warming up.
        """
        width = max(round(window_s / _BIN_S), 1)
        last = int(now_s / _BIN_S)
        if last < 2 * width:
            return False
        before = sum(self._chunk_bins[last - 2 * width : last - width])
        after = sum(self._chunk_bins[last - width : last])
        return before > 0 and after > 0 and abs(after - before) <= tolerance * max(before, after)


def throughput_precision(batches: Sequence[float]) -> float:
    """Relative half-width of the steady-state throughput."""
    return relative_half_width(batches)


def decode_precision(records: Sequence[RequestRecord]) -> float:
    """Relative half-width of the tokens per second that one request sees from its first chunk on."""
    classes: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        if record.completed and len(record.chunks) > 1:
            (first_s, first), (last_s, last) = record.chunks[0], record.chunks[-1]
            classes.setdefault(record.prompt_class, []).append((last - first, last_s - first_s))
    return relative_half_width_of_ratio(classes.values())


def acceptance_precision(records: Sequence[RequestRecord]) -> float:
    """Relative half-width of the accept length over these requests; 0.0 when there is no speculation at all."""
    whole = [record for record in records if record.completed]
    if not any(record.spec_verify_ct for record in whole):
        return 0.0
    classes: dict[str, list[tuple[float, float]]] = {}
    for record in whole:
        emitted = record.spec_verify_ct + record.spec_num_correct_drafts
        classes.setdefault(record.prompt_class, []).append((emitted, record.spec_verify_ct))
    return relative_half_width_of_ratio(classes.values())


def _summed(one: list[int], other: list[int]) -> list[int]:
    return [first + second for first, second in zip_longest(one, other, fillvalue=0)]


def _bins(start_s: float, end_s: float) -> tuple[int, int]:
    """First bin that lies wholly after the start, and the first that does not lie wholly before the end."""
    return int(-(-start_s // _BIN_S)), int(end_s / _BIN_S)
