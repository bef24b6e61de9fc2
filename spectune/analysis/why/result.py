"""What is said of a study's break-even: the shapes, for the terminal, for the report and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from spectune.analysis.diagnosis import Cost
from spectune.analysis.estimate import Estimate
from spectune.analysis.why.what_if_result import WhatIf

Pays = Literal["pays", "loses", "unclear"]


class Jsonable:
    """A data class that becomes a JSON object: estimates as [est, lo, hi], tuples as lists."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {entry.name: _plain(getattr(self, entry.name)) for entry in fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return value.to_json() if hasattr(value, "to_json") else value


@dataclass(frozen=True, slots=True)
class CycleParts(Jsonable):
    """Where the time of one draft+verify cycle goes; None where the study's launches do not tell a part apart.

    Attributes:
        draft_ms: All S draft steps.
        verify_ms: The target's forward over the drafted tokens; with the host's time where that is not told apart.
        host_ms: What every speculative cycle takes beyond a plain step whatever it drafts: host, sampling, the
            drafter's catching up. Told only where cycle and plain step both ran in graphs, or both outside.
        unexplained_ms: What the measured cycle takes beyond the sum of the fitted parts; may be negative.
        words: How it was told apart, or why it was not.
    """

    draft_ms: Estimate | None
    verify_ms: Estimate | None
    host_ms: Estimate | None
    unexplained_ms: float
    words: str


@dataclass(frozen=True, slots=True)
class Needed(Jsonable):
    """What a wanted speed asks of the drafter.

    Attributes:
        target: The wanted speed of one request, tok/s.
        accept_length: Accept length that gives it at the measured cycle, with the interval of the cycle.
        reachable: Whether it is within the bound.
        verdict: "reached", "short", "perfect drafter" or "out of reach".
        words: The same as a sentence.
    """

    target: float
    accept_length: Estimate
    reachable: bool
    verdict: str
    words: str


@dataclass(frozen=True, slots=True)
class VerifyAlone(Jsonable):
    """The limit that a free drafter and a free host would reach: the verify is all there is of a cycle.

    Attributes:
        cycle_ms: The verify.
        break_even: Accept length needed then.
        speed_tok_s: Speed at the measured accept length then.
        missing_ms: What the measured cycle takes beyond it: draft and host.
        needed: What each target would ask for then.
        words: The same as sentences.
    """

    cycle_ms: float
    break_even: float
    speed_tok_s: float
    missing_ms: float
    needed: tuple[Needed, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Discrepancy(Jsonable):
    """Two figures of one level that cannot both be true.

    Attributes:
        between: Which: "inter_chunk", "engine_step", "bound" or "break_even".
        missing_ms: Cycle by accept length / speed minus the other one; None where it is not about a time.
        words: The figures and their difference, as a sentence.
    """

    between: str
    missing_ms: float | None
    words: str


@dataclass(frozen=True, slots=True)
class BreakEvenRow(Jsonable):
    """One candidate at one level, for all requests or for one prompt class.

    Attributes:
        candidate_id: The candidate.
        label: What it is called.
        trial: Its last launch.
        trials: The launches behind the figures.
        confirmed: Whether it was relaunched after it had been picked.
        level: The load point.
        prompt_class: The class; None for all requests.
        num_steps: S.
        eagle_topk: K.
        num_draft_tokens: N.
        accept_length: Mean tokens per verify.
        break_even: Accept length at which it would be as fast as the best baseline there: accept length / speedup.
        speedup: Decode speed over that of the best baseline.
        verdict: "pays", "loses" or "unclear": by the interval of the speedup.
        cycle_ms: The whole cycle.
        decode_speed: Tok/s one request sees; None for a class.
        baseline_tok_s: The best baseline's.
        engine_cycle_ms: The cycle by the engine's own log; None where it does not tell.
        parts: Draft, verify and host of the cycle; None for a class.
        verify_alone: What would be with a free drafter; None where the verify is not told apart.
        bound: Highest accept length possible: S + 1, or N where a block is drafted at once; None if unknown.
        needed: What each target asks for; nothing for a class, whose break-even is that of all requests.
        contradictions: Figures that do not fit together.
        words: Everything as sentences, in reading order.
    """

    candidate_id: str
    label: str
    trial: int
    trials: tuple[int, ...]
    confirmed: bool
    level: str
    prompt_class: str | None
    num_steps: int | None
    eagle_topk: int | None
    num_draft_tokens: int | None
    accept_length: Estimate
    break_even: Estimate
    speedup: Estimate
    verdict: Pays
    cycle_ms: Estimate
    decode_speed: Estimate | None
    baseline_tok_s: float
    engine_cycle_ms: float | None
    parts: CycleParts | None
    verify_alone: VerifyAlone | None
    bound: int | None
    needed: tuple[Needed, ...]
    contradictions: tuple[Discrepancy, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadLimit(Jsonable):
    """The load beyond which a candidate stops paying.

    Attributes:
        candidate_id: The candidate.
        label: What it is called.
        concurrency: Requests in flight at which the speedup is 1, interpolated; None where it is not between levels.
        between: The levels on either side of it; None where it is not between levels.
        points: (level, requests in flight, speedup) of every closed-loop level, by load.
        words: The same as a sentence.
    """

    candidate_id: str
    label: str
    concurrency: Estimate | None
    between: tuple[str, str] | None
    points: tuple[tuple[str, int, Estimate], ...]
    words: str


@dataclass(frozen=True, slots=True)
class WaterfallStep(Jsonable):
    """One step on the way from the baseline to a candidate.

    Attributes:
        name: "baseline", "drafts", "draft", "verify", "host", "cycle", "unexplained", "rejected" or "candidate".
        words: What it is.
        ms: Change in ms per token; the time itself for the first and the last.
        tok_s: Change in tok/s of one request; the speed itself for the first and the last.
        reached_ms: ms per token after it.
        reached_tok_s: tok/s after it.
    """

    name: str
    words: str
    ms: float
    tok_s: float
    reached_ms: float
    reached_tok_s: float


@dataclass(frozen=True, slots=True)
class Waterfall(Jsonable):
    """From the baseline's speed to a candidate's, at one level.

    Attributes:
        candidate_id: The candidate.
        label: What it is called.
        level: The load point.
        steps: In order; the changes add up.
    """

    candidate_id: str
    label: str
    level: str
    steps: tuple[WaterfallStep, ...]


@dataclass(frozen=True, slots=True)
class LostSpeed(Jsonable):
    """A cause of lost speed and what helps.

    Attributes:
        candidate_id: Of which candidate.
        level: At which load.
        cause: Short stable name.
        tok_s_lost: What one request would gain without it, all else as measured; None where nothing tells.
        at_most: Whether that is an upper bound only.
        evidence: What was seen, with its arithmetic.
        action: The cheapest thing that helps.
        cost: What that takes.
        actions: (words, cost) of all of them, cheapest first.
    """

    candidate_id: str
    level: str
    cause: str
    tok_s_lost: float | None
    at_most: bool
    evidence: str
    action: str | None
    cost: Cost | None
    actions: tuple[tuple[str, Cost], ...]


@dataclass(frozen=True, slots=True)
class BreakEvenOfStudy(Jsonable):
    """The object `break_even`: everything a study says about whether speculation pays, and why not more.

    Attributes:
        candidate_id: The speculation the rest is about: the recommended one, else the fastest; None without any.
        level: The level the rest is about: that of the first objective.
        words: What the study says, as sentences in reading order.
        missing: Why there is no answer, in a sentence; None where there is one.
        rows: Per candidate, level and prompt class; all requests before their classes.
        load_limit: Of the candidate above; None with one level only.
        load_limits: Of every candidate that was measured at two loads or more.
        waterfalls: Per candidate and level.
        causes: Of the candidate above at its level: most tok/s lost first, then what cannot be put in figures.
        actions: (words, cost) of all causes, cheapest first.
        what_if: Of the candidate above at its level; None where it cannot be predicted.
    """

    candidate_id: str | None
    level: str | None
    words: tuple[str, ...]
    missing: str | None
    rows: tuple[BreakEvenRow, ...] = ()
    load_limit: LoadLimit | None = None
    load_limits: tuple[LoadLimit, ...] = ()
    waterfalls: tuple[Waterfall, ...] = ()
    causes: tuple[LostSpeed, ...] = ()
    actions: tuple[tuple[str, Cost], ...] = ()
    what_if: WhatIf | None = None
