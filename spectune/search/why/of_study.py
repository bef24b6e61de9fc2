"""Everything a study says about whether speculation pays, and why not more."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from spectune.analysis.comparison import pays
from spectune.analysis.diagnosis import STUDY
from spectune.analysis.why import BreakEvenOfStudy, BreakEvenRow, LoadLimit
from spectune.analysis.why.causes import lost_speed, next_actions
from spectune.analysis.why.load_limit import load_limit
from spectune.analysis.why.waterfall import waterfall
from spectune.engines.rules import newest_of
from spectune.search.answer.details import spoiled
from spectune.search.answer.in_question import in_question
from spectune.search.answer.sentence import sentence
from spectune.search.evidence.figures import measured
from spectune.search.evidence.outcome import Evidence, weigh
from spectune.search.storage.records import TrialRecord
from spectune.search.why.instead import shown_faster
from spectune.search.why.model import StudyModel
from spectune.search.why.rows import Rows, concurrency_of
from spectune.search.why.server import as_server
from spectune.search.why.what_if import Prospect
from spectune.space import SearchSpace

ONE_LOAD = "at which load it begins or stops to pay is not told: that takes two levels that keep requests in flight"


def break_even_of(
    records: Sequence[TrialRecord],
    space: SearchSpace,
    *,
    targets: Sequence[float] | None = None,
    engine_cycles: Mapping[tuple[int, str], float] | None = None,
    candidate_id: str | None = None,
    engine: str = "",
    study: str = STUDY,
) -> BreakEvenOfStudy:
    """Work out a study's break-even object.

    Args:
        records: All launches of the study.
        space: Its search space.
        targets: Wanted speeds of one request, tok/s; those of the space unless given.
        candidate_id: The candidate the answer is to be about; the one the verdict rests on unless given.
        engine_cycles: (trial, level) → cycle by the engine's own log in ms, as far as it was read.
        study: Its name, for commands.
        engine: Title of the engine, which says whether there is a newer one to advise.
    """
    evidence = weigh(records, space)
    model = StudyModel.fit(evidence.line.launches, space)
    wanted = space.targets.decode_speed if targets is None else targets
    maker = Rows(evidence, space, model, engine_cycles or {}, wanted)
    found = list(measured(evidence, space))
    rows = [row for one in found for row in maker.of(one)]
    whole = [row for row in rows if row.prompt_class is None]
    if not whole:
        return BreakEvenOfStudy(None, None, None, (), _missing(records, evidence))
    question = in_question(evidence, found, space, candidate_id)
    assert question is not None, "a row stands for what was compared"
    chosen = next(r for r in whole if (r.candidate_id, r.level) == (question.candidate_id, question.level))
    limits = _limits(whole, space)
    limit = next((one for one in limits if one.candidate_id == chosen.candidate_id), None)
    concurrency = concurrency_of(space, chosen.level)
    prospect = None
    if model is not None and model.foretells:
        prospect = Prospect.of(chosen.candidate_id, whole, found, space, model)
    better, what_if = None, None
    if prospect is not None and concurrency is not None:
        better, what_if = prospect.better(concurrency), prospect.what_if(concurrency)
    at = (chosen.candidate_id, chosen.level)
    one = next(x for x in found if (x.candidate.candidate_id, x.level) == at)
    server = as_server(one, concurrency, space, found, newest=newest_of(engine))
    others = (shown_faster(chosen, found, space, evidence.recommended, study=study), better)
    causes = lost_speed(
        chosen, server, concurrency, others=[cause for cause in others if cause is not None],
        foreseen=what_if is not None, study=shlex.quote(study),
    )  # fmt: skip
    return BreakEvenOfStudy(
        candidate_id=chosen.candidate_id,
        level=chosen.level,
        why=question.why,
        words=(f"the study: {sentence(evidence, space)}", *chosen.words, ONE_LOAD if limit is None else limit.words),
        missing=None,
        rows=tuple(rows),
        strata=tuple(
            kind for one in found if one.candidate.candidate_id == chosen.candidate_id for kind in one.strata()
        ),
        load_limit=limit,
        load_limits=limits,
        waterfalls=tuple(map(waterfall, whole)),
        causes=causes,
        actions=next_actions(causes),
        what_if=what_if,
    )


def _missing(records: Sequence[TrialRecord], evidence: Evidence) -> str:
    """Return why there is nothing to compare, and what helps."""
    if not records:
        return "no launch is finished yet"
    if not evidence.records:
        return f"nothing was measured as asked for; {'; '.join(spoiled(records))}"
    if all(record.candidate.speculative for record in evidence.records):
        return "no baseline is finished: without the speed of no speculation there is no break-even"
    return "no launch with speculation was measured as asked for"


def _limits(whole: Sequence[BreakEvenRow], space: SearchSpace) -> tuple[LoadLimit, ...]:
    """Return the load limit of each candidate that was measured at two closed-loop levels or more.

    What the launches at a level cannot show says nothing of where it begins or stops to pay.
    """
    shown = [row for row in whole if row.verdict == pays(row.speedup)]
    labels = {row.candidate_id: row.label for row in whole}
    found = []
    for candidate_id, label in labels.items():
        loads = [(row, concurrency_of(space, row.level)) for row in shown if row.candidate_id == candidate_id]
        points = [(row.level, load, row.speedup) for row, load in loads if load is not None]
        found.append(load_limit(candidate_id, label, points))
    return tuple(limit for limit in found if limit is not None)
