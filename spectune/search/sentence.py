"""A study's verdict in one sentence, and how it came about in a few more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from spectune.analysis.comparison import Comparison
from spectune.counts import count
from spectune.search.measures import as_measured, gain, goal, measure
from spectune.search.outcome import Evidence
from spectune.search.records import TrialRecord
from spectune.search.speeds import by_candidate, together
from spectune.search.steadiness import steadiness
from spectune.search.steps import Role
from spectune.space import Candidate, SearchSpace

NAMED_TIES = 3
"""In the sentence; all are in `summary.json`."""

UNCONFIRMED = "NOT CONFIRMED: no launch made after it was picked bears its figures out"


def sentence(evidence: Evidence, space: SearchSpace) -> str:
    """Return the verdict as one sentence with its figures, and one on what cannot be told from its recommendation."""
    told, tied = _decided(evidence, space), ties_words(evidence, space, NAMED_TIES)
    return told if tied is None else f"{told} {tied}."


def _decided(evidence: Evidence, space: SearchSpace) -> str:
    candidate, overall = evidence.recommended, evidence.verdict.overall
    if candidate is None:
        return f"No answer: {evidence.no_answer}."
    chosen = space.label(candidate)
    if overall.decision == "speculation":
        found = [
            c for part in evidence.verdict.parts for c in part.comparisons if c.candidate_id == overall.recommended
        ]
        gains = " and ".join(map(gain, found))
        return f"Speculate: {chosen} gives {gains} of the best launch without.{_origin(evidence, space)}"
    if overall.best is None and evidence.unkept is not None:
        return f"Not compared: {evidence.unkept}. Of those that keep what the space asks for the choice is {chosen}."
    if overall.best is None:
        told = "without" if candidate.speculative else "with"
        if all(one.speculative is candidate.speculative for one in _candidates(evidence)):
            return f"Undecided: no candidate {told} speculation was measured yet."
        return f"Undecided: no candidate {told} speculation was measured that could be compared."
    lead = {
        "no_speculation": f"Do not speculate: by {measure(space)} no candidate is as fast as the best launch without",
        "tie": f"Do not speculate: by {measure(space)} no candidate is faster by more than it is worth",
        "undecided": "Undecided: the launches made cannot tell the best candidates from the baseline",
    }[overall.decision]
    parts = [one for part in evidence.verdict.parts for one in part.comparisons]
    closest = " and ".join(
        f"{as_measured(c).est:.2f} × the {goal(c.level)}" for c in parts if c.candidate_id == overall.best.candidate_id
    )
    if len(space.objectives) > 1:
        by = measure(space) if overall.decision == "undecided" else "that"
        closest = f"{overall.best.speedup.est:.2f} × by {by}: {closest}"
    doubt = "" if is_confirmed(overall.best.candidate_id, evidence.records) else ", which no later launch confirmed"
    told = f"{lead}. Closest is {label(overall.best.candidate_id, evidence, space)} with {closest}{doubt}."
    somewhere = list(_where_it_pays(evidence, space))
    return told + (f" By the speed of one request alone it pays at {' and '.join(somewhere)}." if somewhere else "")


def named(evidence: Evidence) -> list[str]:
    """Return the ids of what the sentence rests on, in its order, so that no table leaves out what it is about."""
    best = evidence.verdict.overall.best
    told = [] if evidence.recommended is None else [evidence.recommended.candidate_id]
    if best is not None:
        told += [best.candidate_id, best.baseline_id]
        if evidence.verdict.overall.decision != "speculation":
            told += [one.candidate_id for one in _paying(evidence)]
    return list(dict.fromkeys(told))


def _paying(evidence: Evidence) -> Iterator[Comparison]:
    """Yield at each load the best candidate shown to be faster for one request, whatever all objectives say."""
    for judgement in evidence.by_level:
        paying = [one for one in judgement.comparisons if one.verdict == "pays"]
        if (best := max(paying, key=lambda one: one.log_ratio, default=None)) is not None:
            yield best


def _where_it_pays(evidence: Evidence, space: SearchSpace) -> Iterator[str]:
    for best in _paying(evidence):
        speedup = best.judged
        name = label(best.candidate_id, evidence, space)
        doubt = "" if is_confirmed(best.candidate_id, evidence.records) else ", not confirmed"
        yield f"{best.level} ({name}: {speedup.est:.2f} ×, {speedup.lo:.2f}–{speedup.hi:.2f}{doubt})"


def words(evidence: Evidence, space: SearchSpace) -> list[str]:
    """Return how the verdict came about: each figure, confirmation, and how steady the machine was."""
    verdict, line = evidence.verdict, evidence.line
    told = [verdict.overall.words]
    if len(verdict.parts) > 1 and evidence.unkept is None:
        told += [part.words for part in verdict.parts]
    told += [seen] if (seen := _seen_before(evidence, space)) else []
    told += [tied] if (tied := ties_words(evidence, space, len(evidence.ties))) else []
    told += [shares] if (shares := _shares(evidence)) else []
    told += steadiness(line)
    for candidate in by_candidate(line.every):
        told = [text.replace(candidate.candidate_id, space.label(candidate)) for text in told]
    return told


def ties_words(evidence: Evidence, space: SearchSpace, most: int) -> str | None:
    """Return which candidates these launches cannot tell from the recommended one, None where there is none.

    Args:
        evidence: What the launches say.
        space: Their search space.
        most: How many are named.
    """
    if evidence.recommended is None or not evidence.ties:
        return None
    told = [f"{label(one.candidate_id, evidence, space)} ({_rests_on(one, evidence)})" for one in evidence.ties[:most]]
    more = len(evidence.ties) - len(told)
    rest = f" and {more} more" if more else ""
    first = f"{space.label(evidence.recommended)}, the choice by all launches together"
    return f"Not told apart from {first}: {', '.join(told)}{rest}"


def _rests_on(tie: Comparison, evidence: Evidence) -> str:
    """Return the interval of a tie, and by which launches it is faster where it leaves out that it is not."""
    ratio = f"{tie.judged.lo:.2f}–{tie.judged.hi:.2f} ×"
    if tie.judged.lo <= 1.0:
        return ratio
    if is_confirmed(tie.candidate_id, evidence.records):
        return f"{ratio} by {count(tie.launches[0], 'launch')} to confirm it, yet by no more than it is worth"
    return f"{ratio} by {count(tie.launches[0], 'launch')} of the search, where the best of many is partly luck"


def _shares(evidence: Evidence) -> str | None:
    """Say that most of the search was for the best launch without speculation, where it was."""
    searched = [record.candidate for record in evidence.line.every if record.role is Role.SEARCH]
    plain = sum(not candidate.speculative for candidate in searched)
    if 2 * plain <= len(searched) or plain == len(searched):
        return None
    return f"{plain} of {len(searched)} launches of the search were without speculation: there most was left to find"


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
    return next(space.label(found) for found in _candidates(evidence) if found.candidate_id == candidate_id)


def _candidates(evidence: Evidence) -> Iterator[Candidate]:
    return (record.candidate for record in evidence.line.every)


def _seen_before(evidence: Evidence, space: SearchSpace) -> str | None:
    best = evidence.verdict.overall.best
    seen = None if best is None else seen_in_search(best.candidate_id, evidence, space)
    if best is None or seen is None:
        return None
    return (
        f"confirmed: {best.candidate_id} and {best.baseline_id} in {best.launches[0]} and {best.launches[1]} launches"
        f"{' in turns' if _in_turns(best, evidence) else ''} give {best.speedup.est:.3f} ×, "
        f"where the search had seen {seen:.3f} ×"
    )


def _in_turns(best: Comparison, evidence: Evidence) -> bool:
    """Whether the launches of a comparison follow each other in pairs in every place, with no other between them."""
    pair = {best.candidate_id, best.baseline_id}
    counted = [r for r in evidence.records if r.candidate.candidate_id in pair]
    for place in {r.place for r in counted}:
        trials = [r.trial for r in counted if r.place == place]
        made = [
            r.candidate.candidate_id
            for r in evidence.line.every
            if r.place == place and min(trials) <= r.trial <= max(trials)
        ]
        if len(made) % 2 or any(set(made[at : at + 2]) != pair for at in range(0, len(made), 2)):
            return False
    return True


def _origin(evidence: Evidence, space: SearchSpace) -> str:
    """Return what the figures of a recommendation rest on."""
    best = evidence.verdict.overall.best
    assert best is not None, "speculation is recommended by a comparison"
    if not is_confirmed(best.candidate_id, evidence.records):
        return " Not confirmed by a second launch."
    seen = seen_in_search(best.candidate_id, evidence, space)
    of = "" if len(space.objectives) == 1 else " by their geometric mean"
    before = "" if seen is None else f"; the search had seen {seen:.2f} ×{of}"
    mine, theirs = best.launches
    counted = (
        f"in {count(mine, 'pair')} of launches"
        if mine == theirs
        else f"by {count(mine, 'more launch')} of it and {theirs} without"
    )
    return f" Confirmed {counted}{before}."
