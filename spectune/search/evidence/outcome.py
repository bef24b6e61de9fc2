"""What the launches of a study say: verdict, recommendation and Pareto set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spectune.analysis.comparison import Comparison
from spectune.analysis.launch_noise import LaunchNoise
from spectune.analysis.pareto import pareto_set
from spectune.analysis.ties import ties
from spectune.analysis.verdict import Judgement, Question, judge
from spectune.search.evidence.noise import noise_of
from spectune.search.evidence.speeds import Speed, by_candidate, counted, of_level, of_objective, speeds, together
from spectune.search.evidence.timeline import Timeline, timeline
from spectune.search.evidence.unkept import unkept
from spectune.search.evidence.untried import Uncovered, uncovered, unlaunched, unproven
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.search.storage.values import directions, keeps_bounds, measured_values, score
from spectune.space import Candidate, SearchSpace

TOGETHER = "objectives together"


@dataclass(frozen=True)
class Verdict:
    """The decision of a study.

    Attributes:
        overall: By the objectives together, that is their geometric mean; this one counts.
        parts: By each objective alone, in the order of the file: where the whole comes from.
    """

    overall: Judgement
    parts: tuple[Judgement, ...]


@dataclass(frozen=True)
class Evidence:
    """The launches an answer may rest on, and what follows from them.

    Attributes:
        line: The study's launches, with what is known of drift, jumps and noise.
        records: Those that are compared: measured as asked for since the last jump of the machine, brought to one
            time; of a confirmed candidate only the launches made after it was picked, since the best of many noisy ones
            is partly luck.
        question: What the verdict answers, by the objectives together.
        verdict: Over the objectives, among candidates that keep the constraints.
        by_level: Decode speed of every candidate against the best baseline, level by level.
        recommended: The candidate to run; None when nothing was measured, nothing keeps the constraints, or nothing
            without speculation was launched since a jump.
        unkept: Which constraints no launch keeps, or none of a branch, in a clause; None where each branch has one that
            keeps them.
        ties: The others that these launches cannot tell from it, each compared with it, relaunched ones first, then the
            fastest: of its branch, and of both where the verdict is open.
        pareto: One launch for each candidate that keeps the constraints and that nothing beats in every objective.
        uncovered: What was measured outside CUDA graphs alone: what it is beaten by may be the graphs.
        unlaunched: Drafters that no launch was made of.
    """

    line: Timeline
    records: Sequence[TrialRecord]
    question: Question
    verdict: Verdict
    by_level: tuple[Judgement, ...]
    recommended: Candidate | None
    unkept: str | None
    ties: tuple[Comparison, ...]
    pareto: Sequence[TrialRecord]
    uncovered: Sequence[Uncovered]
    unlaunched: tuple[str, ...]

    @property
    def no_answer(self) -> str | None:
        """Why nothing can be recommended, in a clause; None where something is."""
        if self.recommended is not None:
            return None
        if self.unkept is not None:
            return self.unkept
        if self.line.lacks_baseline:
            return "no launch without speculation was made since the machine jumped, so nothing can be compared"
        return "nothing was measured that could be compared"

    @property
    def chance(self) -> float | None:
        """Chance that speculation pays, by the very figures of the verdict; None before both sides were relaunched.

        None, too, where such launches cannot show it.
        """
        overall = self.verdict.overall
        best = None if overall.unproven else overall.best
        if best is None or not {best.candidate_id, best.baseline_id} <= self.question.confirmed:
            return None
        return best.chance


def weigh(records: Sequence[TrialRecord], space: SearchSpace) -> Evidence:
    """Decide what the launches of a study say."""
    line = timeline(records, space)
    usable = unbiased(line.launches)
    earlier = [r for r in line.launches if r.role is not Role.CONFIRM]
    groups = by_candidate(usable)
    kept = [record for record in usable if keeps_bounds(groups[record.candidate], space)]
    missing, outside = unkept(usable, space), uncovered(records, space)
    confirmed = frozenset(r.candidate.candidate_id for r in usable if r.role is Role.CONFIRM)
    looks = max((r.look for r in usable if r.role is Role.CONFIRM), default=1)

    def asked(
        name: str, among: Sequence[TrialRecord], speed: Speed, levels: Sequence[str], noise: LaunchNoise,
        counts: str = "",
    ) -> Question:  # fmt: skip
        before = speeds(earlier, speed, levels[0], space, line.doubts)
        found = speeds(among, speed, levels[0], space, line.doubts)
        cannot = unproven(outside, levels)
        return Question(name, found, noise, confirmed, before, looks, counts, missing or "", cannot)

    name = space.objectives[0].name if len(space.objectives) == 1 else TOGETHER
    goals = [objective.level for objective in space.objectives]
    question = asked(name, kept, together(space), goals, line.noise, counted(space.objectives))
    overall = judge(question)
    parts = []
    for objective in space.objectives:
        speed = of_objective(objective)
        noise, counts = noise_of(line.launches, speed), counted([objective])
        parts.append(judge(asked(objective.name, kept, speed, [objective.level], noise, counts)))
    by_level = [
        judge(asked(level, usable, of_level(level), [level], noise_of(line.launches, of_level(level))))
        for level in space.workload.level_names
    ]
    recommended = None if line.lacks_baseline else _recommended(kept, overall, space)
    told_apart = overall.decision in ("speculation", "no_speculation") or overall.unproven
    open_ = () if told_apart else overall.comparisons
    apart = replace(question, noise=noise_of(line.launches, together(space), searched=True))
    return Evidence(
        line=line,
        records=usable,
        question=question,
        verdict=Verdict(overall, tuple(parts)),
        by_level=tuple(by_level),
        recommended=recommended,
        unkept=missing,
        ties=() if recommended is None else ties(apart, recommended.candidate_id, judged=open_),
        pareto=_pareto(kept, space),
        uncovered=outside,
        unlaunched=unlaunched(records, space),
    )


def unbiased(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Of confirmed candidates, keep only the launches of the confirmation: side by side, and after they were picked."""
    confirmed = {r.candidate for r in records if r.role is Role.CONFIRM}
    return [r for r in records if r.role is Role.CONFIRM or r.candidate not in confirmed]


def _recommended(kept: Sequence[TrialRecord], overall: Judgement, space: SearchSpace) -> Candidate | None:
    """Return what the verdict recommends; without a baseline that keeps the constraints, the best that does."""
    groups = by_candidate(kept)
    found = next((candidate for candidate in groups if candidate.candidate_id == overall.recommended), None)
    return found or max(groups, key=lambda candidate: _score(groups[candidate], space), default=None)


def _pareto(records: Sequence[TrialRecord], space: SearchSpace) -> list[TrialRecord]:
    """Return the best launch of each candidate whose mean figures nothing beats."""
    groups = list(by_candidate(records).values())
    points = [_mean([measured_values(record, space) or [] for record in group]) for group in groups]
    best = [max(groups[i], key=lambda record: score(record, space)) for i in pareto_set(points, directions(space))]
    return sorted(best, key=lambda record: record.trial)


def comparisons(judgements: Sequence[Judgement]) -> list[Comparison]:
    """Return the comparisons of all levels."""
    return [comparison for judgement in judgements for comparison in judgement.comparisons]


def _score(group: Sequence[TrialRecord], space: SearchSpace) -> float:
    return math.fsum(score(record, space) for record in group) / len(group)


def _mean(rows: Sequence[Sequence[float]]) -> list[float]:
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
