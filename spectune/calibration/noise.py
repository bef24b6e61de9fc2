"""What makes one launch differ from the next, and one second from another."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from spectune.analysis.launch_noise import launch_noise
from spectune.engines.simulated.profile_schema import Noise
from spectune.search import Status, TrialRecord


def fit_noise(records: Sequence[TrialRecord]) -> Noise:
    """Return the noise between launches, from repeats, and within them, from their intervals.

    A level of n seconds knows its mean to window_sd / √n.
    """
    ran = [record for record in records if record.status is Status.OK]
    repeats = defaultdict(list)
    for record in ran:
        for level in record.levels:
            repeats[record.candidate.candidate_id, level.level].append(level.decode_speed)
    between = launch_noise(repeats.values())
    within = [
        min(1.0, level.decode_speed.relative_half_width) / 1.96 * math.sqrt(level.measured_s)
        for record in ran
        for level in record.levels
        if level.measured_s > 0.0
    ]
    return Noise(
        launch_sd=min(1.0, round(between.relative_sd, 5)),
        window_sd=round(min(1.0, median(within)), 5) if within else 0.0,
    )
