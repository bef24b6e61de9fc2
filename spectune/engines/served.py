"""The engine's own side of a level."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Served:
    """What an engine's own log says of the time in which it was measured.

    Attributes:
        graph_used: Whether every decode step of as many requests as were to run went through a captured graph.
        running: Requests in its decode batches, on average, all data-parallel ranks together.
        queued: Requests that waited for room meanwhile.
        retractions: Requests thrown out of the KV cache and begun again, since the engine was started.
        ranks: Data-parallel ranks that decoded.
    """

    graph_used: bool | None = None
    running: float | None = None
    queued: float | None = None
    retractions: int = 0
    ranks: int = 1
