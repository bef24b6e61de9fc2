"""`summary.json`: a study's answer for other programs, with the break-even of every candidate, level and class."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from spectune.engines.rules import newest_of, rules_of
from spectune.search.answer.details import details, words
from spectune.search.answer.disturbed import blamed
from spectune.search.answer.doubts import doubts
from spectune.search.answer.in_question import InQuestion, in_question
from spectune.search.answer.machine_summary import machine_summary
from spectune.search.answer.objective_words import as_measured, goal, measure
from spectune.search.answer.sentence import label, named, seen_in_search, sentence
from spectune.search.evidence.figures import Measured, measured
from spectune.search.evidence.outcome import Evidence, weigh
from spectune.search.planning.plan import Stop
from spectune.search.planning.undecided import command_of, remedy, unmeasured
from spectune.search.proposing.exclusions import learned
from spectune.search.proposing.warm_start import WarmStart
from spectune.search.storage.records import Seconds, Status, TrialRecord
from spectune.search.storage.steps import SCHEMA, Role
from spectune.space import Candidate, SearchSpace

Summary = Mapping[str, Any]
"""The content of `summary.json`."""


def summarise(
    records: Sequence[TrialRecord],
    space: SearchSpace,
    stop: Stop | None,
    *,
    name: str,
    engine: str,
    warm_start: WarmStart | None = None,
    shared: str | None = None,
) -> Summary:
    """Return the content of `summary.json`.

    Args:
        records: All launches of the study.
        space: Its search space.
        stop: Why it ended; None while it runs or after an interruption.
        name: The study.
        engine: Title of the engine.
        warm_start: What the study began with.
        shared: Name of the study that workers share, where this is a copy of it.
    """
    evidence = weigh(records, space)
    found = list(measured(evidence, space))
    return {
        "schema": SCHEMA,
        "study": name,
        "simulated": space.engine.kind == "simulated",
        "engine": engine,
        "finished": stop is not None,
        **_answer(evidence, found, records, space, stop, command_of(space, name, shared)),
        **machine_summary(evidence.line),
        **_choice(evidence, space),
        **_closer_look(evidence, found, space, engine),
        "failures": Counter(r.failure.failure_class.value for r in records if r.failure is not None),
        "exclusions": [exclusion.to_json() for exclusion in learned(records)],
        "suspect": sum(record.status is Status.SUSPECT for record in records),
        "warm_start": None if warm_start is None else warm_start.to_json(),
        "stop": None if stop is None else {"reason": stop.reason, "figure": stop.figure},
        "objectives": [{"metric": o.metric, "direction": o.direction, "level": o.level} for o in space.objectives],
        "targets": {"decode_speed": list(space.targets.decode_speed)},
        "seconds": _seconds(records),
    }


def _answer(
    evidence: Evidence,
    found: Sequence[Measured],
    records: Sequence[TrialRecord],
    space: SearchSpace,
    stop: Stop | None,
    command: str,
) -> dict[str, Any]:
    """Return whether to speculate, in words and figures, and what would decide what is open.

    Args:
        evidence: What the launches say.
        found: Every candidate at every level.
        records: All launches of the study.
        space: The search space.
        stop: Why the study ended.
        command: What goes on with it.
    """
    beside = blamed(records, evidence)
    effect = evidence.verdict.overall.detectable_effect
    open_ = remedy(records, evidence, space, command)
    helps = unmeasured(records, evidence, space, command) if open_ is None else open_.words
    return {
        "verdict": evidence.verdict.overall.decision,
        "sentence": sentence(evidence, space),
        "details": [
            *doubts(evidence, found, space, beside),
            *details(records, evidence, space),
            *([] if helps is None or stop is None else [helps]),
        ],
        "no_answer": evidence.no_answer,
        "unkept": evidence.unkept,
        "words": words(evidence, space),
        "beside": beside,
        "detectable_effect": effect if math.isfinite(effect) else None,
        "to_decide": None if open_ is None else open_.to_json(),
        "speedup": _confirmed(evidence, space),
    }


def _choice(evidence: Evidence, space: SearchSpace) -> dict[str, Any]:
    """Return what to run, what is as good, and what it was compared with."""
    best = _representative(evidence.records, evidence.recommended)
    return {
        "recommended": None if best is None else _launch(best, space),
        "ties": list(_ties(evidence, space)),
        "pareto": [record.trial for record in evidence.pareto],
        "baselines": list(_baselines(evidence.records)),
    }


def _closer_look(evidence: Evidence, found: Sequence[Measured], space: SearchSpace, engine: str) -> dict[str, Any]:
    """Return every candidate's figures, and what stands behind them."""
    from spectune.search.guided.effects import effects

    question, rules = in_question(evidence, found, space), rules_of(space, engine)
    return {
        "named": list(dict.fromkeys([*named(evidence), *([] if question is None else [question.candidate_id])])),
        "candidates": list(_candidates(found, space)),
        "in_question": None if question is None else question.to_json(),
        "outside_graphs": None if question is None else _outside_graphs(question, found, space, engine),
        "effects": [e.to_json() for e in effects(evidence.line.launches, space, evidence.recommended, rules)],
    }


def _baselines(records: Iterable[TrialRecord]) -> Iterable[dict[str, Any]]:
    for record in records:
        for level in () if record.candidate.speculative else record.levels:
            yield {
                "trial": record.trial,
                "level": level.level,
                "decode_speed": level.decode_speed.to_json(),
                "output_throughput": level.output_throughput.to_json(),
            }


def _confirmed(evidence: Evidence, space: SearchSpace) -> dict[str, Any] | None:
    """Return the speedup the verdict rests on, beside what the search had seen of it; None without a comparison."""
    best = evidence.verdict.overall.best
    if best is None:
        return None
    return {
        "candidate_id": best.candidate_id,
        "label": label(best.candidate_id, evidence, space),
        "baseline_id": best.baseline_id,
        "by": measure(space),
        "objectives": [
            {"words": goal(one.level), "ratio": as_measured(one).to_json()}
            for part in evidence.verdict.parts
            for one in part.comparisons
            if one.candidate_id == best.candidate_id
        ],
        "judged": best.judged.to_json(),
        "launches": list(best.launches),
        "seen_in_search": seen_in_search(best.candidate_id, evidence, space),
    }


def _ties(evidence: Evidence, space: SearchSpace) -> Iterable[dict[str, Any]]:
    """Yield what these launches cannot tell from the recommended candidate, with its speed over that one's."""
    for one in evidence.ties:
        yield {
            "candidate_id": one.candidate_id,
            "label": label(one.candidate_id, evidence, space),
            "ratio": one.judged.to_json(),
            "launches": one.launches[0],
        }


def _outside_graphs(
    question: InQuestion, found: Sequence[Measured], space: SearchSpace, engine: str
) -> dict[str, Any] | None:
    """Return what of the speculation in question ran outside CUDA graphs, and what helps."""
    from spectune.search.why import outside_graphs

    cause = outside_graphs(question.candidate_id, found, space, newest=newest_of(engine))
    if cause is None:
        return None
    return {
        "candidate_id": question.candidate_id,
        "label": question.label,
        "cause": cause.name,
        "evidence": cause.evidence,
        "actions": [[action.words, action.cost.value] for action in cause.actions],
    }


def _candidates(found: Iterable[Measured], space: SearchSpace) -> Iterable[dict[str, Any]]:
    for one in found:
        row = {
            "candidate_id": one.candidate.candidate_id,
            "label": space.label(one.candidate),
            "trials": [record.trial for record in one.launches],
            "num_steps": one.candidate.num_steps,
            "level": one.level,
            "confirmed": any(record.role is Role.CONFIRM for record in one.launches),
        }
        yield row | {"class": "all"} | one.figures.to_json() | one.percentiles()
        for prompt_class, length in one.of_classes().items():
            yield row | {"class": prompt_class, "accept_length": length.to_json()}


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
    totals["own"] = max(0.0, math.fsum(record.seconds.own for record in records))
    return {name: round(total, 3) for name, total in totals.items()}
