"""What makes one launch differ from the next, and one second from another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from spectune.analysis.estimate import NORMAL_95, Estimate
from spectune.engines.simulated.profile_schema import Noise
from spectune.search import Status, TrialRecord
from spectune.search.evidence.timeline import timeline
from spectune.space import SearchSpace


def fit_noise(records: Sequence[TrialRecord], space: SearchSpace) -> Noise:
    """Return the noise between launches, which is that of the study's verdict, and within them, from their intervals.

    A level of n seconds knows its mean to window_sd / √n. Levels without speculation tell it, since the cycles of
    others also differ by what is drafted.
    """
    ran = [record for record in records if record.status is Status.OK]
    between = timeline(records, space).noise
    telling = [record for record in ran if not record.candidate.speculative] or ran
    levels = [level for record in telling for level in record.levels if level.measured_s > 0.0]
    within = [_spread(level.decode_cycle_ms or level.cycle_ms) * math.sqrt(level.measured_s) for level in levels]
    return Noise(
        launch_sd=min(1.0, round(between.relative_sd, 5)),
        window_sd=round(min(1.0, median(within)), 5) if within else 0.0,
    )


def _spread(cycle_ms: Estimate) -> float:
    return min(1.0, cycle_ms.relative_half_width) / NORMAL_95
