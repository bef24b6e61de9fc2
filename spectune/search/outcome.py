"""What the launches of a study say: verdict, recommendation and Pareto set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spectune.analysis.estimate import Estimate
from spectune.analysis.pareto import pareto_set
from spectune.analysis.verdict import Comparison, LaunchSpeed, Verdict, decide
from spectune.search.finalists import finalists, score
from spectune.search.records import Role, TrialRecord
from spectune.search.values import directions, figure, keeps_bounds, measured_values
from spectune.space import Candidate, SearchSpace


@dataclass(frozen=True)
class Evidence:
    """The launches an answer may rest on, and what follows from them.

    Attributes:
        records: Measured as asked for; of a confirmed candidate only the launches made after it was picked, since the
            best of many noisy ones is partly luck.
        verdict: Over the objectives.
        by_level: Decode speed of every candidate against the best baseline, at every level.
        recommended: The candidate to run; None when nothing was measured.
        pareto: One launch for each candidate that nothing beats in every objective.
    """

    records: Sequence[TrialRecord]
    verdict: Verdict
    by_level: Verdict
    recommended: Candidate | None
    pareto: Sequence[TrialRecord]


def weigh(records: Sequence[TrialRecord], space: SearchSpace) -> Evidence:
    """Decide what the launches of a study say."""
    usable = unbiased([r for r in records if measured_values(r, space) is not None])
    kept = [r for r in usable if keeps_bounds(r, space)]
    names = [objective.name for objective in space.objectives]
    confirmed = frozenset(r.candidate.candidate_id for r in usable if r.role is Role.CONFIRM)
    verdict = decide(names, list(_objective_speeds(kept, space)), confirmed=confirmed)
    by_level = decide(space.workload.level_names, list(_decode_speeds(usable)), confirmed=confirmed)
    return Evidence(usable, verdict, by_level, _recommended(records, kept, verdict, space), _pareto(kept, space))


def unbiased(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Leave out the launch a confirmed candidate was picked for."""
    confirmed = {r.candidate for r in records if r.role is Role.CONFIRM}
    return [r for r in records if r.role is not Role.SEARCH or r.candidate not in confirmed]


def sentence(evidence: Evidence, space: SearchSpace) -> str:
    """Return the verdict as one sentence with its figures."""
    candidate = evidence.recommended
    decision = evidence.verdict.decision
    if candidate is None:
        return "No answer: nothing was measured that could be compared."
    if decision == "speculation":
        found = [c for c in comparisons(evidence.verdict) if c.candidate_id == candidate.candidate_id]
        once = not any(r.role is Role.CONFIRM and r.candidate == candidate for r in evidence.records)
        caution = " Not confirmed by a second launch." if once else ""
        gains = " and ".join(map(_gain, found))
        return f"Speculate: {space.label(candidate)} gives {gains} of the best launch without.{caution}"
    best = [next(iter(level.comparisons), None) for level in evidence.verdict.levels]
    closest = ", ".join(
        f"{label(c.candidate_id, evidence, space)} {c.speedup.est:.2f} × the {_goal(c.level)}"
        for c in best
        if c is not None
    )
    lead = {
        "no_speculation": "Do not speculate: no candidate is as fast as the best configuration without",
        "tie": "Do not speculate: no candidate is faster by more than it is worth",
        "undecided": "Undecided: the launches made cannot tell the best candidates from the baseline",
    }[decision]
    return f"{lead} ({closest or 'no candidate was measured'})."


def _gain(comparison: Comparison) -> str:
    speedup = comparison.judged
    words = {"pays": "", "loses": ", slower", "unclear": ", not decided"}[comparison.verdict]
    return f"{speedup.est:.2f} × the {_goal(comparison.level)} ({speedup.lo:.2f}–{speedup.hi:.2f}{words})"


def _goal(objective: str) -> str:
    """Return the name of an objective in words: `decode_speed@c1` is the decode speed at c1."""
    metric, _, level = objective.partition("@")
    return f"{metric.replace('_', ' ')} at {level}"


def _recommended(
    records: Sequence[TrialRecord], kept: Sequence[TrialRecord], verdict: Verdict, space: SearchSpace
) -> Candidate | None:
    """Return the finalist where speculation pays for it, otherwise the best baseline."""
    pair = finalists(records, space)
    if pair is not None and verdict.decision == "speculation":
        paying = [c.candidate_id for c in comparisons(verdict) if c.verdict == "pays"]
        if pair[1].candidate_id in paying:
            return pair[1]
        others = [r for r in kept if r.candidate.candidate_id in paying]
        if others:
            return max(others, key=lambda record: score(record, space)).candidate
    baselines = [record for record in kept if not record.candidate.speculative]
    return max(baselines, key=lambda record: score(record, space)).candidate if baselines else None


def _pareto(records: Sequence[TrialRecord], space: SearchSpace) -> list[TrialRecord]:
    """Return the best launch of each candidate whose mean figures nothing beats."""
    groups = list(by_candidate(records).values())
    points = [_mean([measured_values(record, space) or [] for record in group]) for group in groups]
    best = [max(groups[i], key=lambda record: score(record, space)) for i in pareto_set(points, directions(space))]
    return sorted(best, key=lambda record: record.trial)


def _objective_speeds(records: Sequence[TrialRecord], space: SearchSpace) -> Iterable[LaunchSpeed]:
    """Yield each launch's figure of each objective as a speed: what is minimised is inverted."""
    for record in records:
        for objective in space.objectives:
            level = record.level(objective.level)
            assert level is not None, "only launches with all objectives are weighed"
            value = getattr(level, objective.metric)
            speed = value if isinstance(value, Estimate) else Estimate.exactly(figure(level, objective.metric))
            if objective.direction == "minimize":
                speed = Estimate(1 / speed.est, 1 / speed.hi, 1 / speed.lo if speed.lo > 0 else math.inf)
            yield _speed(record, objective.name, speed, level.accept_length.est)


def _decode_speeds(records: Sequence[TrialRecord]) -> Iterable[LaunchSpeed]:
    for record in records:
        for level in record.levels:
            yield _speed(record, level.level, level.decode_speed, level.accept_length.est)


def _speed(record: TrialRecord, at: str, speed: Estimate, accept_length: float) -> LaunchSpeed:
    candidate = record.candidate
    return LaunchSpeed(
        candidate_id=candidate.candidate_id,
        level=at,
        speed=speed,
        accept_length=accept_length,
        num_steps=(candidate.num_steps or 1) if candidate.speculative else 0,
        eagle_topk=candidate.eagle_topk or 0,
        num_draft_tokens=candidate.num_draft_tokens or 0,
    )


def comparisons(verdict: Verdict) -> list[Comparison]:
    """Return the comparisons of all levels."""
    return [comparison for level in verdict.levels for comparison in level.comparisons]


def by_candidate(records: Sequence[TrialRecord]) -> dict[Candidate, list[TrialRecord]]:
    """Return the launches of each candidate."""
    groups: dict[Candidate, list[TrialRecord]] = {}
    for record in records:
        groups.setdefault(record.candidate, []).append(record)
    return groups


def _mean(rows: Sequence[Sequence[float]]) -> list[float]:
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]


def label(candidate_id: str, evidence: Evidence, space: SearchSpace) -> str:
    """Return the label of a candidate by its id."""
    return next(space.label(r.candidate) for r in evidence.records if r.candidate.candidate_id == candidate_id)
