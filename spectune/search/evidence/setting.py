"""What of a candidate drives acceptance and cycle time: S, K, N, the drafter, CUDA graphs and running requests."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectune.space import ALGORITHM, DRAFTER, EAGLE_TOPK, NO_SPECULATION, NUM_DRAFT_TOKENS, NUM_STEPS, text_of

GRAPHS_OFF = ("disable-decode-cuda-graph", "disable-cuda-graph")
GRAPH_SIZES = "cuda-graph-bs-decode"
GRAPH_LIMIT = "cuda-graph-max-bs-decode"
MOST_RUNNING = "max-running-requests"
MEMORY_FRACTION = "mem-fraction-static"
RELEVANT = (
    ALGORITHM, DRAFTER, NUM_STEPS, EAGLE_TOPK, NUM_DRAFT_TOKENS, *GRAPHS_OFF, GRAPH_SIZES, GRAPH_LIMIT, MOST_RUNNING,
    MEMORY_FRACTION,
)  # fmt: skip
"""Parameters a `Setting` reads; candidates that agree in them have the same setting."""


@dataclass(frozen=True)
class Setting:
    """The physics of a candidate.

    Attributes:
        drafter: Algorithm and draft model; None without speculation.
        steps: Draft forwards per cycle, S.
        topk: Branches per draft step, K.
        tokens: Tokens verified per request and cycle, N; 1 without speculation.
        captured: Batch sizes with a graph, ascending; empty when graphs are off; None when the engine chooses them.
        running: Requests that run at once at most.
        static: Share of GPU memory for weights and KV cache; None when the engine chooses it.
    """

    drafter: str | None
    steps: int
    topk: int
    tokens: int
    captured: tuple[int, ...] | None
    running: int | None
    static: float | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Setting:
        """Read the values of a candidate, fixed arguments of the engine beneath them."""
        algorithm = values.get(ALGORITHM, NO_SPECULATION)
        speculative = algorithm != NO_SPECULATION
        draft_model = values.get(DRAFTER)
        running, static = _whole(values.get(MOST_RUNNING)), values.get(MEMORY_FRACTION)
        return cls(
            drafter=f"{algorithm} {text_of(draft_model) if draft_model is not None else ''}".strip()
            if speculative
            else None,
            steps=_whole(values.get(NUM_STEPS)) or 0 if speculative else 0,
            topk=_whole(values.get(EAGLE_TOPK)) or 1 if speculative else 1,
            tokens=_whole(values.get(NUM_DRAFT_TOKENS)) or 2 if speculative else 1,
            captured=_captured(values, running),
            running=running,
            static=float(static) if isinstance(static, int | float) else None,
        )

    @property
    def draft(self) -> tuple[str | None, int, int, int]:
        """All that acceptance depends on."""
        return self.drafter, self.steps, self.topk, self.tokens

    @property
    def depth(self) -> int:
        """Drafted tokens that can be right in one cycle: of a chain all, whoever drafts it."""
        return self.tokens - 1 if self.topk == 1 else self.steps

    def batch(self, concurrency: int) -> int:
        """Return the requests that run at once."""
        return concurrency if self.running is None else max(1, min(concurrency, self.running))

    def padded(self, batch: int) -> int | None:
        """Return the batch size that a graph replays for `batch` requests; None where it runs eagerly."""
        if self.captured is None:
            return batch
        at = bisect_left(self.captured, batch)
        return self.captured[at] if at < len(self.captured) else None

    @property
    def captured_tokens(self) -> int:
        """Tokens of all captured graphs, which their memory follows; sizes that the engine chooses count as one."""
        return self.tokens * (1 if self.captured is None else sum(self.captured))

    @property
    def graph_demand(self) -> float:
        """Captured tokens relative to the memory that the static share leaves them; 0 where no sizes are known."""
        room = 1.0 - self.static if self.static is not None and self.static < 1.0 else 1.0
        return self.captured_tokens / room if self.captured else 0.0


def _captured(values: Mapping[str, Any], running: int | None) -> tuple[int, ...] | None:
    if any(values.get(name) is True for name in GRAPHS_OFF):
        return ()
    sizes, limit = values.get(GRAPH_SIZES), _whole(values.get(GRAPH_LIMIT))
    if isinstance(sizes, int):
        sizes = (sizes,)
    if not isinstance(sizes, tuple | list):
        return None if limit is None else tuple(sorted({*(2**i for i in range(limit.bit_length())), limit}))
    kept = sorted(int(size) for size in sizes)
    if running is not None and kept[-1] > running:  # the engine captures what can run, and no more
        kept = [size for size in kept if size < running] + [running]
    return tuple(kept)


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
