"""A launch as it would have been on a machine that is faster or slower as a whole."""

from __future__ import annotations

import dataclasses

from spectune.analysis.measurement import LevelMeasurement
from spectune.search.storage.records import TrialRecord

_FASTER = ("decode_speed", "output_throughput")
_SLOWER = ("cycle_ms", "inter_chunk_ms", "ttft_p50_ms", "ttft_p95_ms", "itl_p50_ms", "itl_p95_ms")


def scaled(record: TrialRecord, factor: float, doubt: float = 0.0) -> TrialRecord:
    """Return a launch as it would be on a machine that is `factor` times as fast, give or take a half-width of ln."""
    if (factor, doubt) == (1.0, 0.0):
        return record
    return dataclasses.replace(record, levels=tuple(_level(level, factor, doubt) for level in record.levels))


def _level(level: LevelMeasurement, factor: float, doubt: float) -> LevelMeasurement:
    estimates = {name: getattr(level, name).scaled(factor).blurred(doubt) for name in _FASTER}
    estimates["cycle_ms"] = level.cycle_ms.scaled(1.0 / factor).blurred(doubt)
    times = {name: getattr(level, name) / factor for name in _SLOWER if name != "cycle_ms"}
    return dataclasses.replace(level, **estimates, **times)
