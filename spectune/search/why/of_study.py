"""Everything a study says about whether speculation pays, and why not more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spectune.analysis.why import BreakEvenOfStudy, BreakEvenRow
from spectune.search.figures import measured
from spectune.search.outcome import Evidence, weigh
from spectune.search.records import Status, TrialRecord
from spectune.search.why.model import StudyModel
from spectune.search.why.rows import Rows
from spectune.space import SearchSpace


def break_even_of(
    records: Sequence[TrialRecord],
    space: SearchSpace,
    *,
    targets: Sequence[float] | None = None,
    engine_cycles: Mapping[tuple[int, str], float] | None = None,
) -> BreakEvenOfStudy:
    """Work out a study's break-even object.

    Args:
        records: All launches of the study.
        space: Its search space.
        targets: Wanted speeds of one request, tok/s; those of the space unless given.
        engine_cycles: (trial, level) → cycle by the engine's own log in ms, as far as it was read.
    """
    evidence = weigh(records, space)
    model = StudyModel.fit(evidence.line.launches, space)
    wanted = space.targets.decode_speed if targets is None else targets
    maker = Rows(evidence, space, model, engine_cycles or {}, wanted)
    rows = [row for found in measured(evidence, space) for row in maker.of(found)]
    if not rows:
        return BreakEvenOfStudy(None, None, (), _missing(records, evidence))
    chosen = _chosen(rows, evidence, space)
    return BreakEvenOfStudy(chosen.candidate_id, chosen.level, chosen.words, None, tuple(rows))


def _missing(records: Sequence[TrialRecord], evidence: Evidence) -> str:
    """Return why there is nothing to compare, and what helps."""
    if not records:
        return "no launch is finished yet"
    if not evidence.records:
        failed = sum(record.status is Status.FAILED for record in records)
        suspect = sum(record.status is Status.SUSPECT for record in records)
        return f"nothing was measured as asked for: {failed} launches failed, {suspect} are suspect"
    if all(record.candidate.speculative for record in evidence.records):
        return "no baseline is finished: without the speed of no speculation there is no break-even"
    return "no launch with speculation was measured as asked for"


def _chosen(rows: Sequence[BreakEvenRow], evidence: Evidence, space: SearchSpace) -> BreakEvenRow:
    """Return the row the answer is about: the recommended speculation, else the one the verdict rests on."""
    level = space.objectives[0].level
    best = evidence.verdict.overall.best
    wanted = None if best is None else best.candidate_id
    whole = [row for row in rows if row.prompt_class is None]
    return max(whole, key=lambda row: (row.level == level, row.candidate_id == wanted, row.speedup.est))
