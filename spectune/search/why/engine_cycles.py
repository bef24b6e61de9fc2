"""Cycles by the engine's own logs, to hold against the client's."""

from __future__ import annotations

from collections.abc import Sequence

from spectune.analysis.diagnosis import loads_of
from spectune.engines.sglang.server_log import read_server_log
from spectune.errors import SpectuneError
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.records import TrialRecord
from spectune.search.why.rows import EngineCycles, concurrency_of
from spectune.space import SearchSpace

FEWEST_INTERVALS = 3
"""Decode lines at a load below which the log says nothing of it."""


def engine_cycles(folder: StudyFolder, records: Sequence[TrialRecord], space: SearchSpace) -> EngineCycles:
    """Read accept length and speed at every closed-loop level from the logs of a study's launches.

    Launches without a log that can be read are left out.

    Args:
        folder: Of the study.
        records: Its launches.
        space: Its space.
    """
    found = {}
    for record in records:
        if not record.levels:
            continue
        try:
            log = read_server_log(folder.trial_folder(record.trial, record.role) / "server.log")
        except (SpectuneError, OSError):
            continue
        loads = {load.running: load for load in loads_of(log.decode)}
        for level in record.levels:
            load = loads.get(concurrency_of(space, level.level))
            if load is not None and load.intervals >= FEWEST_INTERVALS and load.pure and load.cycle_ms is not None:
                found[record.trial, level.level] = load.cycle_ms
    return found
