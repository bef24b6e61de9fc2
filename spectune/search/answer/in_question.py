"""Which speculation a study's answer discusses: one choice for the terminal, the report and `breakeven`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectune.jsonable import Jsonable
from spectune.search.answer.objective_words import measure
from spectune.search.answer.sentence import is_confirmed
from spectune.search.evidence.figures import Measured
from spectune.search.evidence.outcome import Evidence
from spectune.space import SearchSpace


@dataclass(frozen=True)
class InQuestion(Jsonable):
    """A candidate at a level.

    Attributes:
        candidate_id: The candidate.
        label: What it is called.
        level: That of the first objective, where it was measured there.
        why: Why this one, as the end of a sentence about it.
    """

    candidate_id: str
    label: str
    level: str
    why: str


def in_question(
    evidence: Evidence, found: Sequence[Measured], space: SearchSpace, wanted: str | None = None
) -> InQuestion | None:
    """Choose the candidate; None where no speculation was compared with a baseline.

    Args:
        evidence: What the launches say.
        found: Every candidate at every level.
        space: Their search space.
        wanted: Id of the candidate that was asked for; the one the verdict rests on unless given.
    """
    compared = [one for one in found if one.candidate.speculative and one.figures.speedup is not None]
    if not compared:
        return None
    best, first = evidence.verdict.overall.best, space.objectives[0].level
    named = wanted or (None if best is None else best.candidate_id)

    def rank(one: Measured) -> tuple[bool, bool, float]:
        speedup = one.figures.speedup
        return one.candidate.candidate_id == named, one.level == first, 0.0 if speedup is None else speedup.est

    chosen = max(compared, key=rank)
    candidate = chosen.candidate
    if candidate == evidence.recommended:
        why = "the recommended candidate"
    elif candidate.candidate_id == wanted:
        why = "the candidate asked for"
    elif candidate.candidate_id == named:
        among = ", of those relaunched to decide" if is_confirmed(named, evidence.records) else ""
        ahead = best is not None and best.candidate_id == named and best.speedup.est > 1.0
        lead = "the fastest with speculation" if ahead else "closest to the best launch without speculation"
        why = f"{lead} by {measure(space)}{among}"
    else:
        cause = evidence.unkept or f"none could be judged by {measure(space)}"
        why = f"the fastest there; no verdict rests on it, since {cause}"
    return InQuestion(candidate.candidate_id, space.label(candidate), chosen.level, why)
