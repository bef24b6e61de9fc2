"""Counts tokens as they arrive and says when the rate is steady and known well enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from math import inf, sqrt
from statistics import fmean, pstdev

import numpy as np
import numpy.typing as npt

from spectune.bench.precision import relative_half_width_of_ratio
from spectune.bench.records import RequestRecord

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_BIN_S = 0.05
MOST_BATCHES = 20
_FEWEST_CYCLES = 8
_FEWEST_WINDOWS = 4
_BEYOND_CHANCE = 3.0  # standard errors


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

    def add_all(self, times_s: Floats, tokens: Integers) -> None:
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
        count = min(MOST_BATCHES, int((last - first) * _BIN_S / window_s + 1e-9))
        if count < 1:
            return []
        width = (last - first) // count
        # What does not fill a window is left out at the beginning, which is nearest to the warm-up.
        edges = range(last - width * count, last, width)
        return [sum(self._token_bins[edge : edge + width]) / (width * _BIN_S) for edge in edges]

    def steady(self, now_s: float, window_s: float, tolerance: float, in_flight: int = 1) -> bool:
        """Whether the last two windows agree in chunks per second, as far as whole cycles of a batch can.

        Chunks, not tokens: a cycle takes equally long whatever was accepted, so that a prompt that is easy to draft
        does not look like an engine that is still warming up. A window in which too few of them fit is doubled.

        Args:
            now_s: End of the second window.
            window_s: Length of a window.
            tolerance: Relative difference that still agrees.
            in_flight: Requests in a batch: so many chunks come at once, and one batch more or less is no difference.
        """
        width = max(round(window_s / _BIN_S), 1)
        last = int(now_s / _BIN_S)
        while last >= 2 * width:
            before = sum(self._chunk_bins[last - 2 * width : last - width])
            after = sum(self._chunk_bins[last - width : last])
            if min(before, after) >= _FEWEST_CYCLES * in_flight:
                return abs(after - before) <= tolerance * max(before, after) + in_flight
            width *= 2
        return False

    def settled_s(self, start_s: float, now_s: float, window_s: float, tolerance: float) -> float:
        """From when on the chunks came at one pace: the start, or a later time where the first windows were another.

        The truncation point of the rule MSER (White, *Simulation* 69, 1997): the one after which the mean of the
        windows has the smallest standard error, within their first half. It counts only where what it cuts off differs
        by more than the tolerance and by more than chance, so that an even course keeps all its windows.
        """
        width = max(round(window_s / _BIN_S), 1)
        first, last = _bins(start_s, now_s)
        windows = [sum(self._chunk_bins[edge : edge + width]) for edge in range(first, last - width + 1, width)]
        if len(windows) < _FEWEST_WINDOWS:
            return start_s
        cut = _truncation(windows)
        before, after = windows[:cut], windows[cut:]
        if not before:
            return start_s
        difference = abs(fmean(before) - fmean(after))
        chance = _BEYOND_CHANCE * pstdev(after) * sqrt(1 / len(before) + 1 / len(after))
        changed = difference > max(chance, tolerance * fmean(after))
        return (first + cut * width) * _BIN_S if changed else start_s


def chunks_of(records: Iterable[RequestRecord]) -> tuple[Floats, Integers]:
    """Return when each chunk of all requests came, and the new tokens in it."""
    chunks = [np.array(record.chunks) for record in records if record.chunks]
    times = np.concatenate([np.zeros(0), *(each[:, 0] for each in chunks)])
    tokens = np.concatenate([np.zeros(0), *(np.diff(each[:, 1], prepend=0) for each in chunks)])
    return times, tokens.astype(np.int64)


def decode_precision(records: Sequence[RequestRecord]) -> float:
    """Relative half-width of the tokens per second that one request sees from its first chunk on."""
    classes: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        if record.completed and len(record.chunks) > 1:
            (first_s, first), (last_s, last) = record.chunks[0], record.chunks[-1]
            classes.setdefault(record.prompt_class, []).append((last - first, last_s - first_s))
    return relative_half_width_of_ratio(classes.values())


def decode_speed(records: Sequence[RequestRecord]) -> float | None:
    """Tokens per second that one request sees from its first chunk on; None before the first has ended."""
    streamed = [record.chunks for record in records if record.completed and len(record.chunks) > 1]
    seconds = sum(chunks[-1][0] - chunks[0][0] for chunks in streamed)
    return sum(chunks[-1][1] - chunks[0][1] for chunks in streamed) / seconds if seconds > 0 else None


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


def _truncation(windows: Sequence[int]) -> int:
    """How many windows to leave out, at most half, for the least standard error of the mean of the others."""
    total = squares = count = 0
    best, least = 0, inf
    for cut in range(len(windows) - 1, -1, -1):
        total, squares, count = total + windows[cut], squares + windows[cut] ** 2, count + 1
        if cut <= len(windows) // 2:
            error = (squares - total**2 / count) / count**2
            if error <= least:
                best, least = cut, error
    return best
