"""`summary.json`: a study's answer for other programs, with the break-even of every candidate, level and class."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from spectune.analysis.estimate import Estimate
from spectune.analysis.verdict import Comparison
from spectune.search.outcome import Evidence, by_candidate, comparisons, sentence, weigh
from spectune.search.plan import Stop
from spectune.search.records import SCHEMA, Role, Seconds, Status, TrialRecord
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


def _candidates(evidence: Evidence, space: SearchSpace) -> Iterable[dict[str, Any]]:
    groups = by_candidate(evidence.records)
    compared = {(c.candidate_id, c.level): c for c in comparisons(evidence.by_level)}
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
                lengths = [
                    x.accept_length_by_class[prompt_class] for x in levels if prompt_class in x.accept_length_by_class
                ]
                if candidate.speculative:
                    yield {**row, "class": prompt_class, "accept_length": _pooled(lengths).to_json()}


POOLED = ("accept_length", "cycle_ms", "decode_speed", "output_throughput")


def _against_baseline(comparison: Comparison | None) -> dict[str, Any]:
    if comparison is None:
        return {"speedup": None, "break_even": None, "verdict": None}
    speedup = comparison.speedup
    length = comparison.accept_length
    needed = Estimate.around(
        comparison.break_even, length / speedup.hi, length / speedup.lo if speedup.lo > 0 else math.inf
    )
    verdict = "pays" if speedup.lo > 1.0 else "loses" if speedup.hi < 1.0 else "unclear"
    return {"speedup": speedup.to_json(), "break_even": needed.to_json(), "verdict": verdict}


def _pooled(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of a figure over launches, inside the widest of their intervals."""
    mean = math.fsum(e.est for e in estimates) / len(estimates)
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
