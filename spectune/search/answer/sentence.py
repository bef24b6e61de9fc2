"""A study's verdict in one sentence; what else is to be known of it stands in `details`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from spectune.analysis.comparison import Comparison
from spectune.search.answer.objective_words import as_measured, gain, goal, measure
from spectune.search.evidence.outcome import Evidence
from spectune.search.evidence.speeds import together
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import Candidate, SearchSpace

UNCONFIRMED = "NOT CONFIRMED by its study: the figures are of the search alone, where the best of many is partly luck"


def sentence(evidence: Evidence, space: SearchSpace) -> str:
    """Return the verdict as one sentence with its figures."""
    candidate, overall = evidence.recommended, evidence.verdict.overall
    if candidate is None:
        return f"No answer: {evidence.no_answer}."
    if overall.best is None:
        return _not_compared(candidate, evidence, space)
    found = [c for part in evidence.verdict.parts for c in part.comparisons]
    own = [one for one in found if one.candidate_id == overall.best.candidate_id]
    name = space.drafting(who(overall.best.candidate_id, evidence))  # the rest stands in the details
    if overall.decision == "speculation":
        return f"Speculate: {name} gives {' and '.join(map(gain, own))} of the best launch without."
    launched = " that was launched" if evidence.unlaunched else ""
    lead = {
        "no_speculation": f"Do not speculate: by {measure(space)} no candidate{launched} is as fast as the best launch "
        "without",
        "tie": f"Do not speculate: by {measure(space)} no candidate{launched} is faster by more than it is worth",
        "undecided": f"Undecided: by {measure(space)} the launches made cannot tell the best candidates from the "
        "baseline",
    }[overall.decision]
    if overall.unproven:
        lead = f"Undecided: {overall.unproven}"
    ratio = (
        f"{overall.best.speedup.est:.2f} × its speed"
        if len(space.objectives) > 1
        else " and ".join(f"{as_measured(one).est:.2f} × the {goal(one.level)}" for one in own)
    )
    nearest = "closest is" if overall.best.speedup.est <= 1.0 else "the fastest is"
    return f"{lead}; {nearest} {name} with {ratio}."


def _not_compared(recommended: Candidate, evidence: Evidence, space: SearchSpace) -> str:
    if not space.algorithms:
        return "Not compared: the space offers no speculation."
    if evidence.unkept is not None:
        return f"Not compared: {evidence.unkept}."
    told = "without" if recommended.speculative else "with"
    if all(one.speculative is recommended.speculative for one in _candidates(evidence)):
        return f"Undecided: no candidate {told} speculation was measured yet."
    return f"Undecided: no candidate {told} speculation was measured that could be compared."


def named(evidence: Evidence) -> list[str]:
    """Return the ids of what the sentence rests on, in its order, so that no table leaves out what it is about."""
    best = evidence.verdict.overall.best
    told = [] if evidence.recommended is None else [evidence.recommended.candidate_id]
    if best is not None:
        told += [best.candidate_id, best.baseline_id]
        if evidence.verdict.overall.decision != "speculation":
            told += [one.candidate_id for one in paying(evidence)]
    return list(dict.fromkeys(told))


def paying(evidence: Evidence) -> Iterator[Comparison]:
    """Yield at each load the best candidate shown to be faster for one request, whatever all objectives say."""
    for judgement in evidence.by_level:
        found = [one for one in judgement.comparisons if one.verdict == "pays"]
        if (best := max(found, key=lambda one: one.log_ratio, default=None)) is not None:
            yield best


def seen_in_search(candidate_id: str, evidence: Evidence, space: SearchSpace) -> float | None:
    """Return the speedup a candidate had before it was relaunched, None where that did not happen."""
    best = next((c for c in evidence.verdict.overall.comparisons if c.candidate_id == candidate_id), None)
    if best is None or not is_confirmed(candidate_id, evidence.records):
        return None
    groups = [
        [r for r in evidence.line.every if r.candidate.candidate_id == one and r.role is not Role.CONFIRM]
        for one in (candidate_id, best.baseline_id)
    ]
    if not all(groups):
        return None
    speed = together(space)
    logs = [[math.log(value.est) for r in group if (value := speed(r)) is not None] for group in groups]
    return math.exp(math.fsum(logs[0]) / len(logs[0]) - math.fsum(logs[1]) / len(logs[1]))


def unconfirmed(trials: Sequence[int]) -> str:
    """Return what is to be known of figures that no launch made to confirm them bears out.

    Args:
        trials: The launches behind them.
    """
    return "measured once, not confirmed" if len(trials) == 1 else "not confirmed"


def is_confirmed(candidate_id: str, records: Sequence[TrialRecord]) -> bool:
    """Whether a candidate was relaunched after it had been picked."""
    return any(r.role is Role.CONFIRM and r.candidate.candidate_id == candidate_id for r in records)


def label(candidate_id: str, evidence: Evidence, space: SearchSpace) -> str:
    """Return the label of a candidate by its id."""
    return space.label(who(candidate_id, evidence))


def who(candidate_id: str, evidence: Evidence) -> Candidate:
    """Return a candidate that was launched by its id."""
    return next(found for found in _candidates(evidence) if found.candidate_id == candidate_id)


def _candidates(evidence: Evidence) -> Iterator[Candidate]:
    return (record.candidate for record in evidence.line.every)
