"""What a study says in the end: verdict, recommendation, Pareto set and the break-even of every candidate and level."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from spectune.analysis.estimate import Estimate
from spectune.analysis.pareto import pareto_set
from spectune.analysis.verdict import Comparison, LaunchSpeed, Verdict, decide
from spectune.search.plan import Stop, finalists, score
from spectune.search.records import SCHEMA, Role, Seconds, Status, TrialRecord
from spectune.search.values import directions, figure, keeps_bounds, measured_values
from spectune.space import Candidate, SearchSpace

Summary = Mapping[str, Any]
"""The content of `summary.json`."""


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
    verdict = decide(names, list(_objective_speeds(kept, space)))
    by_level = decide(space.workload.level_names, list(_decode_speeds(usable, space)))
    return Evidence(usable, verdict, by_level, _recommended(records, kept, verdict, space), _pareto(kept, space))


def unbiased(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Leave out the launch a confirmed candidate was picked for."""
    confirmed = {r.candidate for r in records if r.role is Role.CONFIRM}
    return [r for r in records if r.role is not Role.SEARCH or r.candidate not in confirmed]


def summarise(records: Sequence[TrialRecord], space: SearchSpace, stop: Stop | None, *, name: str, engine: str) -> Summary:
    """Return the content of `summary.json`.

    Args:
        records: All launches of the study.
        space: Its search space.
        stop: Why it ended; None while it runs or after an interruption.
        name: The study.
        engine: Title of the engine.
    """
    evidence = weigh(records, space)
    best = _representative(evidence.records, evidence.recommended)
    effect = evidence.verdict.detectable_effect
    return {
        "schema": SCHEMA,
        "study": name,
        "simulated": space.engine.kind == "simulated",
        "engine": engine,
        "finished": stop is not None,
        "verdict": evidence.verdict.decision,
        "sentence": sentence(evidence, space),
        "words": list(evidence.verdict.words),
        "detectable_effect": effect if math.isfinite(effect) else None,
        "recommended": None if best is None else _launch(best, space),
        "pareto": [record.trial for record in evidence.pareto],
        "baselines": [
            {
                "trial": record.trial,
                "level": level.level,
                "decode_speed": level.decode_speed.to_json(),
                "output_throughput": level.output_throughput.to_json(),
            }
            for record in evidence.records
            if not record.candidate.speculative
            for level in record.levels
        ],
        "candidates": list(_candidates(evidence, space)),
        "failures": Counter(r.failure.failure_class.value for r in records if r.failure is not None),
        "suspect": sum(record.status is Status.SUSPECT for record in records),
        "stop": None if stop is None else {"reason": stop.reason, "figure": stop.figure},
        "objectives": [{"metric": o.metric, "direction": o.direction, "level": o.level} for o in space.objectives],
        "targets": {"decode_speed": list(space.targets.decode_speed)},
        "seconds": _seconds(records),
    }


def sentence(evidence: Evidence, space: SearchSpace) -> str:
    """Return the verdict as one sentence with its figures."""
    candidate = evidence.recommended
    decision = evidence.verdict.decision
    if candidate is None:
        return "No answer: nothing was measured that could be compared."
    if decision == "speculation":
        found = [c for c in _comparisons(evidence.verdict) if c.candidate_id == candidate.candidate_id]
        gains = " and ".join(
            f"{c.speedup.est:.2f} × at {c.level} ({c.speedup.lo:.2f}–{c.speedup.hi:.2f})" for c in found
        )
        return f"Speculate: {space.label(candidate)} gives {gains} of the best configuration without speculation."
    best = [next(iter(level.comparisons), None) for level in evidence.verdict.levels]
    closest = ", ".join(
        f"{_label(c.candidate_id, evidence, space)} {c.speedup.est:.2f} × at {c.level}" for c in best if c is not None
    )
    lead = {
        "no_speculation": "Do not speculate: no candidate is as fast as the best configuration without",
        "tie": "Do not speculate: no candidate is faster by more than it is worth",
        "undecided": "Undecided: the launches made cannot tell the best candidates from the baseline",
    }[decision]
    return f"{lead} ({closest or 'no candidate was measured'})."


def _recommended(
    records: Sequence[TrialRecord], kept: Sequence[TrialRecord], verdict: Verdict, space: SearchSpace
) -> Candidate | None:
    """Return the finalist where speculation pays for it, otherwise the best baseline."""
    pair = finalists(records, space)
    if pair is not None and verdict.decision == "speculation":
        paying = [c.candidate_id for c in _comparisons(verdict) if c.speedup.lo > 1.0]
        if pair[1].candidate_id in paying:
            return pair[1]
        others = [r for r in kept if r.candidate.candidate_id in paying]
        if others:
            return max(others, key=lambda record: score(record, space)).candidate
    baselines = [record for record in kept if not record.candidate.speculative]
    return max(baselines, key=lambda record: score(record, space)).candidate if baselines else None


def _pareto(records: Sequence[TrialRecord], space: SearchSpace) -> list[TrialRecord]:
    """Return the best launch of each candidate whose mean figures nothing beats."""
    groups = list(_by_candidate(records).values())
    points = [_mean([measured_values(record, space) or [] for record in group]) for group in groups]
    best = [max(groups[i], key=lambda record: score(record, space)) for i in pareto_set(points, directions(space))]
    return sorted(best, key=lambda record: record.trial)


def _candidates(evidence: Evidence, space: SearchSpace) -> Iterable[dict[str, Any]]:
    groups = _by_candidate(evidence.records)
    compared = {(c.candidate_id, c.level): c for c in _comparisons(evidence.by_level)}
    for candidate, group in groups.items():
        for name in space.workload.level_names:
            levels = [level for record in group if (level := record.level(name)) is not None]
            if not levels:
                continue
            comparison = compared.get((candidate.candidate_id, name))
            row = {
                "candidate_id": candidate.candidate_id,
                "label": space.label(candidate),
                "trials": [record.trial for record in group],
                "num_steps": candidate.num_steps,
                "level": name,
                "confirmed": any(record.role is Role.CONFIRM for record in group),
                "same_mode_ratio": None,
                **_against_baseline(comparison),
            }
            yield {**row, "class": "all", **{m: _pooled([getattr(x, m) for x in levels]).to_json() for m in POOLED}}
            for prompt_class in sorted(levels[0].accept_length_by_class):
                lengths = [x.accept_length_by_class[prompt_class] for x in levels if prompt_class in x.accept_length_by_class]
                if candidate.speculative:
                    yield {**row, "class": prompt_class, "accept_length": _pooled(lengths).to_json()}


POOLED = ("accept_length", "cycle_ms", "decode_speed", "output_throughput")


def _against_baseline(comparison: Comparison | None) -> dict[str, Any]:
    if comparison is None:
        return {"speedup": None, "break_even": None, "verdict": None}
    speedup = comparison.speedup
    length = comparison.accept_length
    needed = Estimate.around(comparison.break_even, length / speedup.hi, length / speedup.lo if speedup.lo > 0 else math.inf)
    verdict = "pays" if speedup.lo > 1.0 else "loses" if speedup.hi < 1.0 else "unclear"
    return {"speedup": speedup.to_json(), "break_even": needed.to_json(), "verdict": verdict}


def _pooled(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of a figure over launches, inside the widest of their intervals."""
    mean = math.fsum(e.est for e in estimates) / len(estimates)
    return Estimate.around(mean, min(e.lo for e in estimates), max(e.hi for e in estimates))


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


def _decode_speeds(records: Sequence[TrialRecord], space: SearchSpace) -> Iterable[LaunchSpeed]:
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


def _comparisons(verdict: Verdict) -> list[Comparison]:
    return [comparison for level in verdict.levels for comparison in level.comparisons]


def _by_candidate(records: Sequence[TrialRecord]) -> dict[Candidate, list[TrialRecord]]:
    groups: dict[Candidate, list[TrialRecord]] = {}
    for record in records:
        groups.setdefault(record.candidate, []).append(record)
    return groups


def _mean(rows: Sequence[Sequence[float]]) -> list[float]:
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]


def _representative(records: Sequence[TrialRecord], candidate: Candidate | None) -> TrialRecord | None:
    return next((record for record in reversed(records) if record.candidate == candidate), None)


def _launch(record: TrialRecord, space: SearchSpace) -> dict[str, Any]:
    return {
        "trial": record.trial,
        "candidate_id": record.candidate.candidate_id,
        "label": space.label(record.candidate),
        "argv": list(record.command.argv),
        "env": dict(record.command.env),
        "unset": list(record.command.unset),
    }


def _label(candidate_id: str, evidence: Evidence, space: SearchSpace) -> str:
    return next(space.label(r.candidate) for r in evidence.records if r.candidate.candidate_id == candidate_id)


def _seconds(records: Sequence[TrialRecord]) -> dict[str, float]:
    totals = {f.name: math.fsum(getattr(r.seconds, f.name) for r in records) for f in fields(Seconds)}
    totals["own"] = math.fsum(record.seconds.own for record in records)
    return {name: round(total, 3) for name, total in totals.items()}
