"""Why the figures of an answer may not be what they seem: a line each, said beside the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spectune.analysis.break_even import impossible
from spectune.counts import count
from spectune.search.answer.in_question import InQuestion, in_question
from spectune.search.answer.sentence import label
from spectune.search.evidence.figures import Measured
from spectune.search.evidence.outcome import Evidence
from spectune.space import SearchSpace

LOUD = 0.10
"""Launches of one configuration that differ by more make any verdict of a few of them doubtful; 1 to 3 % is usual."""


def doubts(
    evidence: Evidence, found: Sequence[Measured], space: SearchSpace, beside: str | None, missing: str | None
) -> Iterator[str]:
    """Yield what speaks against the figures of a verdict, the gravest first.

    Args:
        evidence: What the launches say.
        found: Every candidate at every level.
        space: The search space.
        beside: Other work of the machine, where that may be why the answer is vague.
        missing: What no launch was made of.
    """
    question = in_question(evidence, found, space)
    if question is not None:
        at = (question.candidate_id, question.level)
        even = next(x.figures.break_even for x in found if (x.candidate.candidate_id, x.level) == at)
        if even is not None and (told := impossible(even.est)) is not None:
            yield f"at {question.level} {told}"
    if missing is not None:
        yield missing
    yield from _scatter(evidence, question, space)
    if beside is not None:
        yield beside


def _scatter(evidence: Evidence, question: InQuestion | None, space: SearchSpace) -> Iterator[str]:
    """Yield how much launches of one configuration differ, where that is much, and those of the best baseline."""
    noise, best = evidence.line.noise, evidence.verdict.overall.best
    if noise.relative_sd <= LOUD:
        return
    told = f"launches of one configuration differ by {noise.relative_sd:.1%}, where 1 to 3% is usual"
    if question is None or best is None:
        yield told
        return
    own = [record for record in evidence.records if record.candidate.candidate_id == best.baseline_id]
    speeds = [f"{level.decode_speed.est:.1f}" for r in own if (level := r.level(question.level)) is not None]
    name = label(best.baseline_id, evidence, space)
    each = f"; {count(len(speeds), 'launch')} of {name}: {' and '.join(speeds)} tok/s at {question.level}"
    yield told + (each if len(speeds) > 1 else "")
