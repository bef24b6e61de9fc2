"""What is said of a study's break-even: the shapes, for the terminal, for the report and as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from spectune.analysis.comparison import Pays
from spectune.analysis.diagnosis import Cost
from spectune.analysis.estimate import Estimate
from spectune.analysis.strata import Stratum
from spectune.analysis.why.cycle import CycleParts, Discrepancy, Needed, VerifyAlone
from spectune.analysis.why.what_if_result import WhatIf
from spectune.jsonable import Jsonable


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
        candidate_id: The speculation the rest is about, the one in question; None without any.
        level: The level the rest is about: that of the first objective.
        why: Why it is about this candidate; None without any.
        words: What the study says, as sentences in reading order.
        missing: Why there is no answer, in a sentence; None where there is one.
        rows: Per candidate, level and prompt class; all requests before their classes.
        strata: Of the candidate above at every level: prompt classes, as in its rows, and context lengths.
        load_limit: Of the candidate above; None with one level only.
        load_limits: Of every candidate that was measured at two loads or more.
        waterfalls: Per candidate and level.
        causes: Of the candidate above at its level: most tok/s lost first, then what cannot be put in figures.
        actions: (words, cost) of all causes, cheapest first.
        what_if: Of the candidate above at its level; None where it cannot be predicted.
    """

    candidate_id: str | None
    level: str | None
    why: str | None
    words: tuple[str, ...]
    missing: str | None
    rows: tuple[BreakEvenRow, ...] = ()
    strata: tuple[Stratum, ...] = ()
    load_limit: LoadLimit | None = None
    load_limits: tuple[LoadLimit, ...] = ()
    waterfalls: tuple[Waterfall, ...] = ()
    causes: tuple[LostSpeed, ...] = ()
    actions: tuple[tuple[str, Cost], ...] = ()
    what_if: WhatIf | None = None
