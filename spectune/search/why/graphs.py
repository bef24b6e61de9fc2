"""Which of a candidate's target steps ran outside CUDA graphs, over all loads: what a speed at one load hides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spectune.analysis.diagnosis import GRAPH_CAUSES, Cause, diagnose
from spectune.search.evidence.figures import Measured
from spectune.search.why.rows import concurrency_of
from spectune.search.why.server import as_server
from spectune.space import SearchSpace


def outside_graphs(
    candidate_id: str, found: Sequence[Measured], space: SearchSpace, *, newest: bool | None
) -> Cause | None:
    """Return at which batch sizes a candidate ran outside CUDA graphs, or will, and why; None where it does not.

    Args:
        candidate_id: The candidate.
        found: Everything that was measured.
        space: Of the study.
        newest: Whether its engine's version is the newest there is; None where that is not known.
    """
    own = [one for one in found if one.candidate.candidate_id == candidate_id]
    if not own:
        return None
    servers = [as_server(one, concurrency_of(space, one.level), space, found, newest=newest) for one in own]
    whole = replace(servers[0], loads=tuple(load for server in servers for load in server.loads))
    return next((cause for cause in diagnose(whole).causes if cause.name in GRAPH_CAUSES), None)
