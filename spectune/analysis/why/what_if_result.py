"""What would be if: the shapes."""

from __future__ import annotations

from dataclasses import dataclass

from spectune.jsonable import Jsonable


@dataclass(frozen=True, slots=True)
class AtAcceptLength(Jsonable):
    """What a drafter of another quality would give.

    Attributes:
        accept_length: Of that drafter at the candidate's own S, K and N.
        speed: Tok/s of one request there.
        best_num_steps: S that would be fastest with that drafter.
        best_eagle_topk: K likewise.
        best_num_draft_tokens: N likewise.
        best_accept_length: Its accept length at those.
        best_speed: Its speed at those.
    """

    accept_length: float
    speed: float
    best_num_steps: int
    best_eagle_topk: int
    best_num_draft_tokens: int
    best_accept_length: float
    best_speed: float


@dataclass(frozen=True, slots=True)
class AtCycle(Jsonable):
    """What another cycle time would give, with the drafter as it is.

    Attributes:
        cycle_ms: The cycle.
        break_even: Accept length needed.
        speed: Tok/s of one request.
    """

    cycle_ms: float
    break_even: float
    speed: float


@dataclass(frozen=True, slots=True)
class AtLoad(Jsonable):
    """What another load would give.

    Attributes:
        concurrency: Requests in flight.
        measured: Whether a level has this load.
        speed: Tok/s of one request with the candidate.
        baseline_speed: Without speculation.
        best_num_steps: S that would be fastest at this load with the same drafter; 0 where no speculation is.
        best_eagle_topk: K likewise; 0 likewise.
        best_num_draft_tokens: N likewise; 0 likewise.
        best_speed: Its speed.
    """

    concurrency: int
    measured: bool
    speed: float
    baseline_speed: float
    best_num_steps: int
    best_eagle_topk: int
    best_num_draft_tokens: int
    best_speed: float


@dataclass(frozen=True, slots=True)
class WhatIf(Jsonable):
    """Predictions for one candidate, scaled so that at what was measured they are what was measured.

    Attributes:
        candidate_id: The candidate.
        level: The load of the first two tables.
        baseline_tok_s: The best baseline there.
        by_accept_length: Another drafter, from accepting nothing to accepting everything.
        by_cycle: Another machine or engine, longer and shorter cycles.
        by_load: Other loads.
        words: What follows, and what the predictions rest on, as sentences.
    """

    candidate_id: str
    level: str
    baseline_tok_s: float
    by_accept_length: tuple[AtAcceptLength, ...]
    by_cycle: tuple[AtCycle, ...]
    by_load: tuple[AtLoad, ...]
    words: tuple[str, ...]
