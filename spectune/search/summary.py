"""`summary.json`: a study's answer for other programs, with the break-even of every candidate, level and class."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from spectune.analysis.comparison import Comparison
from spectune.analysis.estimate import Estimate, ratio
from spectune.analysis.measurement import LevelMeasurement
from spectune.search.exclusions import learned
from spectune.search.outcome import Evidence, comparisons, weigh
from spectune.search.plan import Stop
from spectune.search.records import SCHEMA, Role, Seconds, Status, TrialRecord
from spectune.search.sentence import seen_in_search, sentence, words
from spectune.search.speeds import by_candidate, system_values
from spectune.search.timeline import Timeline, causes
from spectune.space import Candidate, SearchSpace

Summary = Mapping[str, Any]
"""The content of `summary.json`."""


def summarise(
    records: Sequence[TrialRecord], space: SearchSpace, stop: Stop | None, *, name: str, engine: str
) -> Summary:
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
    effect = evidence.verdict.overall.detectable_effect
    return {
        "schema": SCHEMA,
        "study": name,
        "simulated": space.engine.kind == "simulated",
        "engine": engine,
        "finished": stop is not None,
        "verdict": evidence.verdict.overall.decision,
        "sentence": sentence(evidence, space),
        "words": words(evidence, space),
        "detectable_effect": effect if math.isfinite(effect) else None,
        "speedup": _confirmed(evidence, space),
        "noise": {"launch_sd": evidence.line.noise.relative_sd, "dof": evidence.line.noise.dof},
        "drift": _drift(evidence.line),
        "jumps": list(_jumps(evidence.line)),
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
        "exclusions": [exclusion.to_json() for exclusion in learned(records)],
        "suspect": sum(record.status is Status.SUSPECT for record in records),
        "stop": None if stop is None else {"reason": stop.reason, "figure": stop.figure},
        "objectives": [{"metric": o.metric, "direction": o.direction, "level": o.level} for o in space.objectives],
        "targets": {"decode_speed": list(space.targets.decode_speed)},
        "seconds": _seconds(records),
    }


def _confirmed(evidence: Evidence, space: SearchSpace) -> dict[str, Any] | None:
    """Return the speedup the verdict rests on, beside what the search had seen of it; None without a comparison."""
    best = evidence.verdict.overall.best
    if best is None:
        return None
    return {
        "candidate_id": best.candidate_id,
        "baseline_id": best.baseline_id,
        "judged": best.judged.to_json(),
        "launches": list(best.launches),
        "seen_in_search": seen_in_search(best.candidate_id, evidence, space),
    }


def _drift(line: Timeline) -> dict[str, Any] | None:
    """Return the change of all speeds in an hour, relative, and whether it was taken out of the figures."""
    if line.drift is None:
        return None
    return {"per_hour": _relative(line.drift.per_hour).to_json(), "corrected": line.drift.shown}


def _jumps(line: Timeline) -> Iterable[dict[str, Any]]:
    for jump in line.jumps:
        change = _relative(jump.change).to_json()
        yield {"before": jump.before, "after": jump.after, "change": change, "causes": causes(jump, line.every)}


def _relative(log_change: Estimate) -> Estimate:
    return Estimate(math.expm1(log_change.est), math.expm1(log_change.lo), math.expm1(log_change.hi))


def _candidates(evidence: Evidence, space: SearchSpace) -> Iterable[dict[str, Any]]:
    compared = {(c.candidate_id, c.level): c for c in comparisons(evidence.by_level)}
    groups = by_candidate(evidence.records)
    for candidate, group in groups.items():
        twin = next((g for c, g in groups.items() if not c.speculative and _same_mode(c, candidate)), [])
        for name in space.workload.level_names:
            levels = [level for record in group if (level := record.level(name)) is not None]
            if not levels:
                continue
            row = {
                "candidate_id": candidate.candidate_id,
                "label": space.label(candidate),
                "trials": [record.trial for record in group],
                "num_steps": candidate.num_steps,
                "level": name,
                "confirmed": any(record.role is Role.CONFIRM for record in group),
            }
            same_mode = [level for record in twin if (level := record.level(name)) is not None]
            comparison = compared.get((candidate.candidate_id, name))
            yield row | {"class": "all"} | _figures(levels, comparison, same_mode if candidate.speculative else [])
            for prompt_class in sorted(levels[0].accept_length_by_class) if candidate.speculative else ():
                found = [x.accept_length_by_class.get(prompt_class) for x in levels]
                length = _mean([estimate for estimate in found if estimate is not None])
                yield row | {"class": prompt_class, "accept_length": length.to_json()}


def _same_mode(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates differ in nothing but speculation."""
    return system_values(one) == system_values(other)


def _figures(
    levels: Sequence[LevelMeasurement], comparison: Comparison | None, same_mode: Sequence[LevelMeasurement]
) -> dict[str, Any]:
    """Return a candidate's figures at a level, means over its launches that fit together exactly.

    Speeds are geometric means, as the speedup is; cycle = accept length / speed and break-even = accept length /
    speedup follow, so that baseline speed × cycle is the break-even.
    """
    length = _mean([level.accept_length for level in levels])
    speed = _geometric_mean([level.decode_speed for level in levels])
    cycle = ratio(length, speed).scaled(1000.0)
    figures: dict[str, Any] = {
        "accept_length": length.to_json(),
        "decode_speed": speed.to_json(),
        "output_throughput": _geometric_mean([level.output_throughput for level in levels]).to_json(),
        "cycle_ms": cycle.to_json(),
        "same_mode_ratio": speed.est / _geometric_mean([x.decode_speed for x in same_mode]).est if same_mode else None,
    }
    if comparison is None:
        return figures | {"speedup": None, "baseline_speed": None, "break_even": None, "verdict": None}
    speedup = comparison.judged
    return figures | {
        "speedup": speedup.to_json(),
        "baseline_speed": speed.est / speedup.est,
        "break_even": ratio(length, speedup).to_json(),
        "verdict": comparison.verdict,
    }


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of a figure over launches, inside the widest of their intervals."""
    mean = math.fsum(e.est for e in estimates) / len(estimates)
    return Estimate.around(mean, min(e.lo for e in estimates), max(e.hi for e in estimates))


def _geometric_mean(estimates: Sequence[Estimate]) -> Estimate:
    mean = math.exp(math.fsum(math.log(e.est) for e in estimates) / len(estimates))
    return Estimate.around(mean, min(e.lo for e in estimates), max(e.hi for e in estimates))


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


def _seconds(records: Sequence[TrialRecord]) -> dict[str, float]:
    totals = {f.name: math.fsum(getattr(r.seconds, f.name) for r in records) for f in fields(Seconds)}
    totals["own"] = math.fsum(record.seconds.own for record in records)
    return {name: round(total, 3) for name, total in totals.items()}
