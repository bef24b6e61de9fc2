"""Sums a study up: its answer, with the break-even of every candidate, level and class."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields

from spectune.engines.rules import newest_of, rules_of, version_of
from spectune.search.answer.by_load import by_load
from spectune.search.answer.details import details, words
from spectune.search.answer.disturbed import blamed
from spectune.search.answer.doubts import doubts
from spectune.search.answer.in_question import InQuestion, in_question
from spectune.search.answer.machine_summary import machine_drift, machine_jumps, places
from spectune.search.answer.objective_words import as_measured, goal, measure
from spectune.search.answer.sentence import label, named, seen_in_search, sentence
from spectune.search.answer.steadiness import steadiness
from spectune.search.answer.summary_fields import (
    BaselineLevel,
    CandidateLevel,
    Noise,
    ObjectiveRatio,
    OutsideGraphs,
    Recommended,
    Speedup,
    Summary,
    Tie,
)
from spectune.search.evidence.figures import Measured, measured
from spectune.search.evidence.outcome import Evidence, weigh
from spectune.search.planning.plan import Stop
from spectune.search.planning.undecided import command_of, never_launched, remedy, unmeasured
from spectune.search.proposing.exclusions import learned
from spectune.search.proposing.warm_start import WarmStart
from spectune.search.storage.records import Seconds, Status, TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import SearchSpace


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
    """Sum up a study.

    Args:
        records: All launches of the study.
        space: Its search space.
        stop: Why it ended; None while it runs or after an interruption.
        name: The study.
        engine: Title of the engine.
        warm_start: What the study began with.
        shared: Name of the study that workers share, where this is a copy of it.
    """
    from spectune.search.guided.effects import effects

    evidence = weigh(records, space)
    found, line = list(measured(evidence, space)), evidence.line
    command, beside = command_of(space, name, shared), blamed(records, evidence)
    open_ = remedy(records, evidence, space, command)
    helps = unmeasured(records, evidence, space, command) if open_ is None else open_.words
    effect = evidence.verdict.overall.detectable_effect
    question, rules = in_question(evidence, found, space), rules_of(space, engine)
    return Summary(
        study=name,
        simulated=space.engine.is_simulated,
        engine=engine,
        finished=stop is not None,
        verdict=evidence.verdict.overall.decision,
        sentence=sentence(evidence, space),
        details=[
            *doubts(evidence, found, space, beside, never_launched(records, evidence, space, command)),
            *details(records, evidence, space, name),
            *by_load(evidence, space, study=name, version=version_of(engine)),
            *([] if helps is None or stop is None else [helps]),
        ],
        no_answer=evidence.no_answer,
        unkept=evidence.unkept,
        words=words(evidence, space),
        beside=beside,
        detectable_effect=effect if math.isfinite(effect) else None,
        to_decide=open_,
        speedup=_speedup(evidence, space),
        noise=Noise(line.noise.relative_sd, line.noise.dof),
        drift=machine_drift(line.places[0].drift) if line.places else None,
        steadiness=steadiness(line),
        jumps=list(machine_jumps(line)),
        places=list(places(line)),
        recommended=_recommended(evidence, space),
        ties=list(_ties(evidence, space)),
        pareto=[record.trial for record in evidence.pareto],
        baselines=list(_baselines(evidence.records)),
        named=list(dict.fromkeys([*named(evidence), *([] if question is None else [question.candidate_id])])),
        candidates=[_candidate(one, space) for one in found],
        in_question=question,
        outside_graphs=None if question is None else _outside_graphs(question, found, space, engine),
        effects=effects(line.launches, space, evidence.recommended, rules),
        failures=Counter(r.failure.failure_class.value for r in records if r.failure is not None),
        exclusions=learned(records),
        suspect=sum(record.status is Status.SUSPECT for record in records),
        warm_start=warm_start,
        stop=stop,
        objectives=space.objectives,
        targets={"decode_speed": space.targets.decode_speed},
        seconds=_seconds(records),
    )


def _baselines(records: Sequence[TrialRecord]) -> Iterator[BaselineLevel]:
    for record in records:
        for level in () if record.candidate.speculative else record.levels:
            yield BaselineLevel(record.trial, level.level, level.decode_speed, level.output_throughput)


def _speedup(evidence: Evidence, space: SearchSpace) -> Speedup | None:
    """Return the speedup the verdict rests on, beside what the search had seen of it; None without a comparison."""
    best = evidence.verdict.overall.best
    if best is None:
        return None
    found = [one for part in evidence.verdict.parts for one in part.comparisons]
    return Speedup(
        candidate_id=best.candidate_id,
        label=label(best.candidate_id, evidence, space),
        baseline_id=best.baseline_id,
        by=measure(space),
        objectives=[
            ObjectiveRatio(goal(one.level), as_measured(one)) for one in found if one.candidate_id == best.candidate_id
        ],
        judged=best.judged,
        launches=best.launches,
        seen_in_search=seen_in_search(best.candidate_id, evidence, space),
    )


def _ties(evidence: Evidence, space: SearchSpace) -> Iterator[Tie]:
    """Yield what these launches cannot tell from the recommended candidate, with its speed over that one's."""
    for one in evidence.ties:
        yield Tie(one.candidate_id, label(one.candidate_id, evidence, space), one.judged, one.launches[0])


def _outside_graphs(
    question: InQuestion, found: Sequence[Measured], space: SearchSpace, engine: str
) -> OutsideGraphs | None:
    """Return what of the speculation in question ran outside CUDA graphs, and what helps."""
    from spectune.search.why import outside_graphs

    cause = outside_graphs(question.candidate_id, found, space, newest=newest_of(engine))
    if cause is None:
        return None
    helps = [(action.words, action.cost) for action in cause.actions]
    return OutsideGraphs(question.candidate_id, question.label, cause.name, cause.evidence, helps)


def _candidate(one: Measured, space: SearchSpace) -> CandidateLevel:
    return CandidateLevel(
        candidate_id=one.candidate.candidate_id,
        label=space.label(one.candidate),
        trials=[record.trial for record in one.launches],
        num_steps=one.candidate.num_steps,
        level=one.level,
        confirmed=any(record.role is Role.CONFIRM for record in one.launches),
        figures=one.figures,
        percentiles=one.percentiles(),
        by_class=one.of_classes(),
    )


def _recommended(evidence: Evidence, space: SearchSpace) -> Recommended | None:
    """Return the last launch of what to run."""
    found = [record for record in evidence.records if record.candidate == evidence.recommended]
    if not found:
        return None
    candidate, command = found[-1].candidate, found[-1].command
    return Recommended(
        found[-1].trial, candidate.candidate_id, space.label(candidate), command.argv, command.env, command.unset
    )


def _seconds(records: Sequence[TrialRecord]) -> dict[str, float]:
    totals = {f.name: math.fsum(getattr(r.seconds, f.name) for r in records) for f in fields(Seconds)}
    totals["own"] = max(0.0, math.fsum(record.seconds.own for record in records))
    return {name: round(total, 3) for name, total in totals.items()}
