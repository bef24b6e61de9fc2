"""What makes one launch differ from the next, and one second from another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from spectune.analysis.estimate import NORMAL_95
from spectune.engines.simulated.profile_schema import Noise
from spectune.search import Status, TrialRecord
from spectune.search.evidence.timeline import timeline
from spectune.space import SearchSpace


def fit_noise(records: Sequence[TrialRecord], space: SearchSpace) -> Noise:
    """Return the noise between launches, which is that of the study's verdict, and within them, from their intervals.

    A level of n seconds knows its mean to window_sd / √n.
    """
    ran = [record for record in records if record.status is Status.OK]
    between = timeline(records, space).noise
    within = [
        min(1.0, level.decode_speed.relative_half_width) / NORMAL_95 * math.sqrt(level.measured_s)
        for record in ran
        for level in record.levels
        if level.measured_s > 0.0
    ]
    return Noise(
        launch_sd=min(1.0, round(between.relative_sd, 5)),
        window_sd=round(min(1.0, median(within)), 5) if within else 0.0,
    )
