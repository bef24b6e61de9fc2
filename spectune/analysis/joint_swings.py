"""What slows down or speeds up all requests of a level at once, which no bootstrap over requests can see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spectune.analysis.estimate import Estimate
from spectune.analysis.steady import Share
from spectune.bench.meter import MOST_BATCHES
from spectune.bench.precision import critical_value

_BLOCK_S = 1.0


@dataclass(frozen=True, slots=True)
class CommonSwings:
    """Swings of the decoding speed that requests in flight at the same time have in common.

    Attributes:
        relative_sd: What they add to the standard error of a mean speed or cycle, relative to it.
        dof: Degrees of freedom behind that.
    """

    relative_sd: float
    dof: int

    def widen(self, figure: Estimate) -> Estimate:
        """An interval that was drawn over requests, with the swings added in quadrature."""
        half = critical_value(self.dof) * self.relative_sd * abs(figure.est)
        return Estimate(
            figure.est,
            figure.est - math.hypot(figure.est - figure.lo, half),
            figure.est + math.hypot(figure.hi - figure.est, half),
        )


def joint_swings(decoding: Sequence[Share], steady_s: tuple[float, float]) -> CommonSwings:
    """Estimate them from the requests of a level.

    The variance of a ratio clustered in two ways is that between requests, plus that between blocks of time, minus that
    between pieces of one request in one block (Cameron, Gelbach and Miller, *Journal of Business & Economic Statistics*
    29, 2011). The first is what a bootstrap over requests gives; this is the rest, where it is above zero. The ratio is
    cycles per second, its residuals 1/Σ cycles − seconds/Σ seconds of every gap between chunks; what is accepted in a
    cycle is each request's own.

    Args:
        decoding: Requests of the steady state.
        steady_s: Its start and end.
    """
    begin_s, end_s = steady_s
    blocks = max(2, min(MOST_BATCHES, int((end_s - begin_s) / _BLOCK_S)))
    total_gaps = sum(len(share.chunks) - 1 for share in decoding)
    total_s = sum(share.seconds for share in decoding)
    pieces = np.zeros((len(decoding), blocks))
    for request, share in enumerate(decoding):
        times = np.array(share.chunks, dtype=np.float64)[:, 0]
        residuals = 1.0 / total_gaps - np.diff(times) / total_s
        middles = (times[1:] + times[:-1]) / 2 - begin_s
        places = (middles / (end_s - begin_s) * blocks).astype(int)
        places = np.minimum(places, blocks - 1)  # of two chunks at the very end
        pieces[request] = np.bincount(places, residuals, blocks)
    excess = blocks / (blocks - 1) * float((pieces.sum(axis=0) ** 2).sum() - (pieces**2).sum())
    return CommonSwings(math.sqrt(max(0.0, excess)), blocks - 1)
