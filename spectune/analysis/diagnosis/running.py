"""A server that already runs, as far as its log or its own words tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Protocol

from spectune.analysis.break_even import cycle_ms_of

ENOUGH_PURE = 3
"""Intervals of decoding alone from which a speed is taken; with fewer, those with prefills count too."""


GRAPH_FLAG = "--cuda-graph-max-bs-decode"
"""How SGLang since 0.5.15 calls the largest captured batch."""
STEPWISE = frozenset({"EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "FROZEN_KV_MTP"})
"""Algorithms that draft one position after the other."""


class DecodeSample(Protocol):
    """One interval of decode steps, as an engine logs it."""

    @property
    def running(self) -> int:
        """Requests in the batch."""

    @property
    def accept_length(self) -> float | None:
        """Mean tokens per verify; None without speculation."""

    @property
    def tok_s(self) -> float:
        """Tokens per second of all of them."""

    @property
    def in_graph(self) -> bool | None:
        """Whether it ran in a CUDA graph."""

    @property
    def first(self) -> bool:
        """Whether its speed counts time before the first request."""

    @property
    def pure(self) -> bool:
        """Whether no prefill fell into it."""


@dataclass(frozen=True, slots=True)
class Load:
    """What was seen at one number of running requests.

    Attributes:
        running: Requests decoded together, per data-parallel rank; None where the server does not say.
        intervals: Decode intervals seen, an engine's first one left out.
        accept_length: Mean tokens per verify, bonus token included, of the intervals that the speed rests on; of all,
            or of the first one, where there are none. None without speculation.
        decode_speed: Tokens per second one request sees at that accept length and the median cycle of those intervals;
            None when nothing usable was seen.
        in_graph: Share of the intervals that ran in CUDA graphs; None where it is not known.
        pure: Whether the speed is that of intervals without prefills.
        survival: P(at least i drafted tokens accepted), i from 1; empty where that was not counted.
    """

    running: int | None
    intervals: int
    accept_length: float | None
    decode_speed: float | None
    in_graph: float | None
    pure: bool = True
    survival: tuple[float, ...] = ()

    @property
    def cycle_ms(self) -> float | None:
        """The whole draft and verify cycle, T = τ/v; a plain decode step without speculation."""
        if self.decode_speed is None:
            return None
        return cycle_ms_of(1.0 if self.accept_length is None else self.accept_length, self.decode_speed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What is known of a server; whatever is not known is None or empty.

    Attributes:
        algorithm: Speculative algorithm in effect; None without speculation.
        speculation_known: Whether that is known at all.
        num_steps: Draft steps per cycle, S.
        eagle_topk: Branches per step, K.
        num_draft_tokens: Tokens verified per request and cycle, N.
        draft_architecture: Class of the drafter's model.
        draft_path: Where the drafter came from.
        backends: Attention backends by SGLang's field names; empty where none is known.
        graphs_possible: Whether decode steps can run in CUDA graphs: not on a CPU, nor on a server that only prefills.
        graphs_off: Whether the launch turned them off.
        overlap_off: Whether drafting and scheduling do not overlap.
        padded: Whether a batch may run in the graph of a larger one.
        captured: Largest batch captured for the target's step; 0 when none was, None when not known.
        graph_flag: How this version calls the largest captured batch.
        max_running: Requests that may run at once, per data-parallel rank.
        asked_running: Requests that were asked to.
        running_lowered: SGLang's sentence when it lowered them itself.
        kv_tokens: Tokens the KV cache holds.
        peak_usage: Highest share of the KV cache in use.
        most_running: Largest batch seen.
        most_queued: Longest queue seen.
        retractions: Requests thrown out of the KV cache.
        cached_share: Share of prompt tokens that came from the prefix cache.
        prompt_tokens: Prompt tokens that share is of.
        first_tok_s: Throughput of an engine's first interval, which says nothing.
        ranks_without_acceptance: Data-parallel ranks that report no accept length.
        loads: Loads seen, by running requests.
        simulated: Whether it only stands in for an engine.
        newest: Whether its engine's version is the newest there is.
        died_of: Kind of failure that ended it, such as `memory`; None where it is not known to have ended.
        last_words: What it said then.
    """

    algorithm: str | None = None
    speculation_known: bool = True
    num_steps: int | None = None
    eagle_topk: int | None = None
    num_draft_tokens: int | None = None
    draft_architecture: str | None = None
    draft_path: str | None = None
    backends: Mapping[str, str] = field(default_factory=dict)
    graphs_possible: bool = True
    graphs_off: bool = False
    overlap_off: bool = False
    padded: bool = True
    captured: int | None = None
    graph_flag: str = GRAPH_FLAG
    max_running: int | None = None
    asked_running: int | None = None
    running_lowered: str | None = None
    kv_tokens: int | None = None
    peak_usage: float | None = None
    most_running: int = 0
    most_queued: int = 0
    retractions: int = 0
    cached_share: float | None = None
    prompt_tokens: int = 0
    first_tok_s: float | None = None
    ranks_without_acceptance: int = 0
    loads: tuple[Load, ...] = ()
    simulated: bool = False
    newest: bool | None = None
    died_of: str | None = None
    last_words: str = ""

    @property
    def short_of_memory(self) -> bool:
        """Whether it died for want of memory, or runs fewer requests than it was asked to for want of it."""
        most, asked = self.max_running, self.asked_running
        return self.died_of == "memory" or (most is not None and asked is not None and most < asked)

    @property
    def stepwise(self) -> bool:
        """Whether S draft steps, one after the other, accept S + 1 tokens at most."""
        return self.algorithm in STEPWISE and self.num_steps is not None

    @property
    def tree(self) -> bool:
        """Whether it drafts a tree, K > 1."""
        return self.algorithm in STEPWISE and (self.eagle_topk or 1) > 1

    @property
    def bound(self) -> int | None:
        """Highest accept length possible: S + 1, or N where a whole block is drafted at once."""
        return (self.num_steps or 0) + 1 if self.stepwise else self.num_draft_tokens

    def load_at(self, running: int | None) -> Load | None:
        """Return the load to judge by: with a speed the nearest to what is asked for, else the one seen most often."""
        usable = [load for load in self.loads if load.decode_speed is not None or load.accept_length is not None]
        if not usable:
            return None
        if running is None:
            return max(usable, key=lambda load: (load.decode_speed is not None, load.intervals))
        return min(
            usable,
            key=lambda load: (load.decode_speed is None, load.running is None, abs((load.running or 0) - running)),
        )


def loads_of(samples: Iterable[DecodeSample]) -> tuple[Load, ...]:
    """Return what was seen at each number of running requests.

    An engine's first interval counts the time it waited for its first request (sglang#5502): its speed is left out. Its
    accept length and its graphs are as real as any other's: they count where nothing else does.
    """
    by_running: dict[int, list[DecodeSample]] = {}
    for sample in samples:
        if sample.running > 0 and (sample.accept_length is not None or not sample.first):
            by_running.setdefault(sample.running, []).append(sample)
    return tuple(_load(running, by_running[running]) for running in sorted(by_running))


def _load(running: int, samples: Sequence[DecodeSample]) -> Load:
    timed = [sample for sample in samples if not sample.first]
    moving = [sample for sample in timed if sample.tok_s > 0]
    pure = [sample for sample in moving if sample.pure]
    chosen = pure if len(pure) >= ENOUGH_PURE else moving
    telling = chosen or timed or samples
    lengths = [sample.accept_length for sample in telling if sample.accept_length is not None]
    graphs = [sample.in_graph for sample in telling if sample.in_graph is not None]
    length = fmean(lengths) if lengths else None
    cycles_s = [(sample.accept_length or 1.0) * running / sample.tok_s for sample in chosen]
    return Load(
        running=running,
        intervals=len(timed),
        accept_length=length,
        decode_speed=(length or 1.0) / median(cycles_s) if cycles_s else None,
        in_graph=fmean(graphs) if graphs else None,
        pure=chosen is pure,
    )
