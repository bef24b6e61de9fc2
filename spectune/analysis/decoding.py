"""Requests while they were decoding in a steady state, and figures of their sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from spectune.analysis.acceptance import context_bucket, position_acceptance, sum_histograms
from spectune.analysis.estimate import Estimate, Floats, bootstrap
from spectune.analysis.steady import Share

_SEED = 0  # of every bootstrap: the same requests always give the same intervals
_ENOUGH = 0.2  # of the requests: fewer with undisturbed tokens are not like the others


class Decoding:
    """What came of requests in a steady state; every figure is one of sums over them.

    Args:
        found: Their shares of it, one at least.
    """

    def __init__(self, found: Sequence[Share]) -> None:
        self.shares = found
        self.classes = [share.record.prompt_class for share in found]
        self.contexts = [context_bucket(share.record) for share in found]
        self._rows = np.array([_row(share) for share in found], dtype=np.float64)

    @cached_property
    def accept_length(self) -> Estimate:
        """τ of them all."""
        return _accept_length(self._rows, self.classes)

    def decode_speed(self) -> Estimate:
        """Return tokens per second of decoding."""
        return bootstrap(lambda sums: sums[..., 0] / sums[..., 1], self._rows, self.classes, seed=_SEED)

    def cycle_ms(self) -> Estimate:
        """Return T = τ / decode speed, in milliseconds."""
        return bootstrap(_cycle_ms, self._rows, self.classes, seed=_SEED)

    def decode_cycle_ms(self) -> Estimate | None:
        """Return T of the undisturbed tokens, over the requests that have any; None where hardly any request has."""
        chosen = [index for index, tokens in enumerate(self._rows[:, 4]) if tokens > 0]
        if len(chosen) < max(1, _ENOUGH * len(self._rows)):
            return None
        return bootstrap(
            lambda sums: _cycle_ms(sums[..., [4, 5, 2, 3]]),
            self._rows[chosen],
            [self.classes[index] for index in chosen],
            seed=_SEED,
        )

    def accept_length_by(self, strata: Sequence[str]) -> dict[str, Estimate]:
        """Return the accept length of each stratum, resampled within the prompt classes it holds.

        Args:
            strata: The stratum of each request.
        """
        names, found = _in_order(strata), {}
        if len(names) == 1:
            return {names[0]: self.accept_length}
        for name in names:
            chosen = [index for index, stratum in enumerate(strata) if stratum == name]
            found[name] = _accept_length(self._rows[chosen], [self.classes[index] for index in chosen])
        return found

    def per_position(self) -> tuple[float, ...]:
        """Return P(at least i drafted tokens accepted) over all cycles."""
        return _survival(self.shares)

    def per_position_by_class(self) -> dict[str, tuple[float, ...]]:
        """Return the same of each prompt class."""
        return {
            name: _survival([share for share in self.shares if share.record.prompt_class == name])
            for name in _in_order(self.classes)
        }

    def cycles_per_chunk(self) -> float:
        """Return cycles that the engine counted, per chunk that came; the first chunk is the prefill's."""
        records = [share.record for share in self.shares]
        cycles = sum(r.spec_verify_ct or r.output_tokens - r.chunks[0][1] for r in records)
        return cycles / sum(len(r.chunks) - 1 for r in records)


def sizes(strata: Sequence[str]) -> dict[str, int]:
    """Return how many requests each stratum has, in the order in which strata are shown."""
    counted = Counter(strata)
    return {name: counted[name] for name in _in_order(strata)}


def _row(share: Share) -> tuple[float, ...]:
    """What a request contributes: the columns that the functions of sums below speak of."""
    return (
        share.tokens, share.seconds, share.verifies, share.correct, share.undisturbed_tokens, share.undisturbed_s
    )  # fmt: skip


def _tau(sums: Floats) -> Floats:
    verifies = sums[..., 2]
    return 1.0 + np.divide(sums[..., 3], verifies, out=np.zeros_like(verifies), where=verifies > 0)


def _cycle_ms(sums: Floats) -> Floats:
    """T = τ / decode speed (MEASUREMENT.md), in milliseconds."""
    return 1000.0 * _tau(sums) * sums[..., 1] / sums[..., 0]


def _accept_length(rows: Floats, classes: Sequence[str]) -> Estimate:
    if not rows[:, 2].any():
        return Estimate.exactly(1.0)
    return bootstrap(_tau, rows, classes, seed=_SEED).at_least(1.0)


def _survival(shares: Sequence[Share]) -> tuple[float, ...]:
    return position_acceptance(sum_histograms(share.record.spec_correct_drafts_histogram for share in shares)).survival


def _in_order(strata: Sequence[str]) -> list[str]:
    """By the number that a name begins with, where it does, then by name."""
    return sorted(set(strata), key=lambda name: (int(low) if (low := name.partition("-")[0]).isdecimal() else 0, name))
