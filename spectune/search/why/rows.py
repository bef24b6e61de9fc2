"""The break-even rows of a study: every speculative candidate, level and prompt class against the best baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean

from spectune.analysis.break_even import break_even_arithmetic
from spectune.analysis.comparison import PAYS
from spectune.analysis.estimate import Estimate
from spectune.analysis.measurement import LevelMeasurement
from spectune.analysis.strata import Stratum
from spectune.analysis.verdict import TOO_SHORT
from spectune.analysis.why import BreakEvenRow, CycleParts
from spectune.analysis.why.arithmetic import discrepancies, needed, verify_alone
from spectune.search.evidence.figures import Measured, break_even_of
from spectune.search.evidence.outcome import Evidence
from spectune.search.evidence.setting import Setting
from spectune.search.storage.steps import Role
from spectune.search.why.model import StudyModel
from spectune.search.why.parts import cycle_parts
from spectune.space import SearchSpace

AS_FAST = 0.005
"""A difference that rounds to no per cent has no direction."""
EngineCycles = Mapping[tuple[int, str], float]
"""(trial, level) → cycle by the engine's own log, ms."""


@dataclass(frozen=True)
class Rows:
    """What rows are made from.

    Attributes:
        evidence: Of the study.
        space: Its space.
        model: What its launches say of cycles; None where they are too few.
        engine_cycles: Cycles by the engine's own logs.
        targets: Wanted speeds of one request, tok/s.
    """

    evidence: Evidence
    space: SearchSpace
    model: StudyModel | None
    engine_cycles: EngineCycles
    targets: Sequence[float]

    def of(self, found: Measured) -> list[BreakEvenRow]:
        """Return the row of all requests of a candidate at a level and one for each class; none for a baseline."""
        if found.figures.speedup is None or not found.candidate.speculative:
            return []
        row = self._whole(found, found.figures.speedup)
        return [row, *(_of_class(row, stratum) for stratum in found.strata() if stratum.kind == "class")]

    def _whole(self, found: Measured, speedup: Estimate) -> BreakEvenRow:
        candidate, cycle, length = found.candidate, found.figures.cycle_ms, found.figures.accept_length
        baseline, even = found.figures.decode_speed.est / speedup.est, break_even_of(length, speedup)
        bound = bound_of(found)
        told = [self.engine_cycles[at] for r in found.launches if (at := (r.trial, found.level)) in self.engine_cycles]
        engine_cycle = fmean(told) if told else None
        parts = cycle_parts(
            self.model, candidate, concurrency_of(self.space, found.level), cycle.est,
            (_in_graphs(found.levels), _in_graphs(self._baseline(found))),
        )  # fmt: skip
        figures = {"baseline_tok_s": baseline, "accept_length": length.est}
        alone = verify_alone(parts, self.targets, cycle_ms=cycle.est, bound=bound, **figures)
        contradictions = tuple(
            discrepancies(
                cycle_ms=cycle.est, inter_chunk_ms=fmean(level.inter_chunk_ms for level in found.levels),
                decode_cycle_ms=_decode_cycle(found.levels),
                engine_cycle_ms=engine_cycle, accept_length=length.est, break_even=even.est, bound=bound,
            )
        )  # fmt: skip
        row = BreakEvenRow(
            candidate_id=candidate.candidate_id, label=self.space.label(candidate), trial=found.launches[-1].trial,
            trials=tuple(record.trial for record in found.launches),
            confirmed=any(record.role is Role.CONFIRM for record in found.launches),
            level=found.level, prompt_class=None, num_steps=candidate.num_steps, eagle_topk=candidate.eagle_topk,
            num_draft_tokens=candidate.num_draft_tokens, accept_length=length, break_even=even, speedup=speedup,
            verdict=found.figures.verdict or "unclear", cycle_ms=cycle, decode_speed=found.figures.decode_speed,
            baseline_tok_s=baseline, engine_cycle_ms=engine_cycle, parts=parts, verify_alone=alone, bound=bound,
            needed=needed(self.targets, cycle_ms=cycle, bound=bound, **figures), contradictions=contradictions,
            words=(),
        )  # fmt: skip
        measured = geometric_mean([level.decode_speed.est for level in self._baseline(found)])
        return replace(row, words=tuple(_words(row, parts, self._by(row.level), measured)))

    def _by(self, level: str) -> str:
        """Return what a row's verdict is by, where that of the study is by more; empty where it is by the same."""
        told = {(one.metric, one.level) for one in self.space.objectives}
        return "" if told == {("decode_speed", level)} else f"by the speed of one request at {level} alone, "

    def _baseline(self, found: Measured) -> Sequence[LevelMeasurement]:
        """Return what the best baseline's launches measured at the same level."""
        wanted = None if found.comparison is None else found.comparison.baseline_id
        launches = [r for r in self.evidence.records if r.candidate.candidate_id == wanted]
        return [level for record in launches if (level := record.level(found.level)) is not None]


def concurrency_of(space: SearchSpace, level: str) -> int | None:
    """Return the requests in flight of a level; None in an open loop."""
    return next((entry.concurrency for entry in space.workload.levels if entry.name == level), None)


def bound_of(found: Measured) -> int | None:
    """Return the highest accept length that a candidate can have."""
    candidate = found.candidate
    if candidate.num_steps is None and candidate.num_draft_tokens is None:
        return None
    return Setting.of(candidate.values).depth + 1


def _in_graphs(levels: Sequence[LevelMeasurement]) -> bool | None:
    told = {level.graph_used for level in levels}
    return told.pop() if len(told) == 1 else None


def _decode_cycle(levels: Sequence[LevelMeasurement]) -> float | None:
    told = [level.decode_cycle_ms.est for level in levels if level.decode_cycle_ms is not None]
    return fmean(told) if told else None


def _of_class(row: BreakEvenRow, stratum: Stratum) -> BreakEvenRow:
    """Return the row of one class: the engine verifies all classes in one batch, so cycle and break-even are theirs."""
    words = (f"{stratum.words}: accept length {stratum.accept_length.words}: {PAYS[stratum.verdict]}",)
    return replace(
        row, prompt_class=stratum.name, accept_length=stratum.accept_length, speedup=stratum.speedup,
        verdict=stratum.verdict, decode_speed=None, engine_cycle_ms=None, parts=None, verify_alone=None, needed=(),
        contradictions=(), words=words,
    )  # fmt: skip


def _words(row: BreakEvenRow, parts: CycleParts, by: str, measured: float) -> Iterator[str]:
    yield (
        f"accept length {row.accept_length.words}; break-even "
        f"{break_even_arithmetic(row.baseline_tok_s, row.cycle_ms.est)} = {row.break_even.words}"
    )
    if f"{measured:.1f}" != f"{row.baseline_tok_s:.1f}":
        yield (
            f"the best launch without was measured at {measured:.1f} tok/s and counts as {row.baseline_tok_s:.1f}: it "
            "is judged by all launches of it and of those about as fast"
        )
    change = row.speedup.est - 1.0
    faster = (
        f"{abs(change):.0%} {'faster' if change > 0 else 'slower'} than" if abs(change) >= AS_FAST else "as fast as"
    )
    low, high = row.speedup.lo - 1.0, row.speedup.hi - 1.0
    known = f"{low:+z.0%} to {high:+z.0%}" if math.isfinite(high) else TOO_SHORT
    yield f"{by}{PAYS[row.verdict]}: {faster} the best baseline ({known})"
    if row.bound is not None and row.break_even.est >= row.bound:
        yield f"these settings reach an accept length of {row.bound} at most: at this cycle no drafter makes them pay"
    yield _split(parts)
    if row.verify_alone is not None:
        yield row.verify_alone.words
    yield from (one.words for one in row.needed)
    yield from (one.words for one in row.contradictions)


def _split(parts: CycleParts) -> str:
    if parts.draft_ms is None or parts.verify_ms is None:
        return parts.words
    host = "" if parts.host_ms is None else f", host {parts.host_ms.est:.1f} ms"
    verify = "verify" if parts.host_ms is not None else "verify with host"
    rest = f", not explained {parts.unexplained_ms:+z.1f} ms"
    return f"the cycle: draft {parts.draft_ms.est:.1f} ms, {verify} {parts.verify_ms.est:.1f} ms{host}{rest}"
