"""Draft, verify and host of a measured cycle, as far as the study's launches tell them apart."""

from __future__ import annotations

import math

from spectune.analysis.estimate import Estimate
from spectune.analysis.why import CycleParts
from spectune.search.evidence.setting import Setting
from spectune.search.why.model import DRAFT, HOST, StudyModel
from spectune.space import Candidate

LEARNED = 0.5
"""Launches must have halved what was unknown of a part before it is told."""
VAGUE = 0.5
"""A part whose half-width is a larger share of itself, and more than `NEGLIGIBLE` of the cycle, is not told."""
NEGLIGIBLE = 0.05

METHOD = (
    "non-negative regression of all cycles on draft steps, verified tokens and requests; 95 % intervals from its "
    "residuals"
)


def cycle_parts(
    model: StudyModel | None, candidate: Candidate, concurrency: int | None, cycle_ms: float,
    graphs: tuple[bool | None, bool | None],
) -> CycleParts:  # fmt: skip
    """Split a cycle.

    Args:
        model: Of the study; None where there is too little for one.
        candidate: Whose it is.
        concurrency: Requests in flight; None in an open loop.
        cycle_ms: As measured.
        graphs: Whether the candidate's steps, and the baseline's, ran in captured graphs; None where not known.
    """
    if model is None:
        return _untold("too few launches were measured to tell draft, verify and host apart")
    if concurrency is None:
        return _untold("requests that arrive by the clock make batches of no one size: the cycle is not told apart")
    if not model.foretells:
        return _untold(
            f"draft and verify are not told apart, and nothing is predicted: the fit of all cycles is off by "
            f"{model.error:.0%} (root mean square); launches on a machine that does nothing else would tell more"
        )
    setting = model.setting(candidate)
    draft = model.part(setting, concurrency, DRAFT)
    if not _told(model, setting, concurrency, DRAFT, draft, cycle_ms):
        return _untold(f"draft and verify are not told apart: {_why_not(model)}")
    whole = model.cycle_ms(setting, concurrency)
    host = model.part(setting, concurrency, HOST)
    alike = graphs[0] is not None and graphs[0] == graphs[1]
    if alike and _told(model, setting, concurrency, HOST, host, cycle_ms):
        verify = model.part(setting, concurrency, DRAFT | HOST, without=True)
        return CycleParts(draft, verify, host, cycle_ms - whole, METHOD)
    verify = model.part(setting, concurrency, DRAFT, without=True)
    why = (
        "the host's time is within the verify: the launches do not tell it"
        if alike or None in graphs
        else "the host's time is within the verify: plain steps ran in graphs and verifies did not, or the other way "
        "round, so what every cycle takes is not the host's alone"
    )
    return CycleParts(draft, verify, None, cycle_ms - whole, f"{METHOD}; {why}")


def _told(
    model: StudyModel, setting: Setting, concurrency: int, names: frozenset[str], part: Estimate, cycle_ms: float
) -> bool:
    half = (part.hi - part.lo) / 2.0
    sharp = half <= max(VAGUE * part.est, NEGLIGIBLE * cycle_ms)
    return sharp and model.learned(setting, concurrency, names) >= LEARNED and math.isfinite(half)


def _why_not(model: StudyModel) -> str:
    if model.loads == 1:
        return (
            "at a single load every step more is a token more to verify; launches at a second load (workload.levels), "
            "or trees, would help to tell"
        )
    return (
        "too few launches differ in steps at the same number of verified tokens; a tree, another number of steps or "
        "another load would tell"
    )


def _untold(words: str) -> CycleParts:
    return CycleParts(None, None, None, 0.0, words)
