"""Does speculation pay: what was accepted against what has to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spectune.analysis.break_even import break_even_arithmetic
from spectune.analysis.comparison import Pays
from spectune.counts import count
from spectune.report.material import Material, speedup_of
from spectune.report.plots import Axis, Dot, Key, Plot, RowName, Rows, Scale, Segment, span, tip_of
from spectune.report.sections.predicted import Predicted, predicted
from spectune.report.sections.section import MOST_ROWS, Section
from spectune.report.sections.what_if import Curve, curves
from spectune.report.wording import NOTHING, close_interval, estimate, length, number, speedup_interval, times
from spectune.search.answer.sentence import unconfirmed
from spectune.search.answer.summary_fields import CandidateLevel

VERDICTS: Mapping[Pays, str] = {"pays": "good", "loses": "bad", "unclear": "unclear"}


@dataclass(frozen=True)
class BreakEvenRow:
    """One speculating candidate at one level: what it accepts, what it would have to, and the arithmetic of both."""

    label: str
    remark: str
    level: str
    verdict: str
    tone: str
    accept_length: str
    accept_interval: str
    break_even: str
    cycle: str
    speedup: str
    speedup_interval: str
    same_mode: str
    arithmetic: str
    details: tuple[str, ...]


@dataclass(frozen=True)
class BreakEven:
    """The section."""

    curves: tuple[Curve, ...]
    predicted: Predicted | None
    plot: Plot | None
    rows: tuple[BreakEvenRow, ...]


def break_even(material: Material) -> Section:
    """Return what every speculating candidate accepts and would have to: the one in question, then the fastest."""
    ranked = _ranked(material)
    rows = tuple(_row(row, material) for row in ranked)
    return Section("break-even", "Break-even", BreakEven(curves(material), predicted(material), _plot(ranked), rows))


def _ranked(material: Material) -> list[CandidateLevel]:
    """Return the rows of speculating candidates, each candidate's levels as in the file."""
    speculating = [row for row in material.rows if row.candidate_id not in material.baselines]
    best: dict[str, float] = {}
    for row in speculating:
        best[row.candidate_id] = max(speedup_of(row), best.get(row.candidate_id, 0.0))

    def rank(row: CandidateLevel) -> tuple[bool, float, str, int]:
        candidate = row.candidate_id
        return candidate != material.focus, -best[candidate], candidate, material.levels.index(row.level)

    return sorted(speculating, key=rank)


def _row(row: CandidateLevel, material: Material) -> BreakEvenRow:
    figures, steps = row.figures, row.num_steps
    accepted, needed, cycle = figures.accept_length, figures.break_even, figures.cycle_ms
    remarks = ["Pareto-optimal"] if row.candidate_id in material.pareto else []
    remarks.append("confirmed by relaunch" if row.confirmed else unconfirmed(row.trials))
    details = [f"{length(accepted.est)} / {number(cycle.est)} ms = {number(accepted.est / cycle.est * 1000.0)} tok/s"]
    if steps:
        details.append(f"{count(steps, 'step')} can give {steps + 1} at most")
    details += material.remarks.get((row.candidate_id, row.level), ())
    # The baseline that the break-even stands for, so that the three figures always belong together.
    arithmetic = needed and break_even_arithmetic(needed.est / cycle.est * 1000.0, cycle.est)
    return BreakEvenRow(
        label=row.label,
        remark=", ".join(remarks),
        level=row.level,
        verdict=figures.verdict or "no baseline",
        tone=VERDICTS[figures.verdict or "unclear"],
        accept_length=length(accepted.est),
        accept_interval=close_interval(accepted),
        break_even=length(needed.est) if needed else NOTHING,
        cycle=f"{estimate(cycle)} ms",
        speedup=times(figures.speedup),
        speedup_interval=speedup_interval(figures.speedup),
        same_mode=f"{ratio:.2f} × without, in the same settings" if (ratio := figures.same_mode_ratio) else "",
        arithmetic=f"{arithmetic} = {length(needed.est)}" if needed else NOTHING,
        details=tuple(details),
    )


def _plot(ranked: Sequence[CandidateLevel]) -> Plot | None:
    """Return accept length against break-even, a line per candidate and level, in the order given."""
    rows = [(row, even) for row in ranked if (even := row.figures.break_even) is not None][:MOST_ROWS]
    if not rows:
        return None
    ends = (end.est for row, needed in rows for end in (row.figures.accept_length, needed))
    x = Scale.over(ends, holding=(1.0,), room=0.1)
    lines = Rows(len(rows))
    segments, dots, names = [], [], []
    for index, (row, needed) in enumerate(rows):
        at, tone = lines.at(index), VERDICTS[row.figures.verdict or "unclear"]
        accepted = row.figures.accept_length
        begin, end = x.across(needed.est), x.across(accepted.est)
        segments.append(Segment(begin, at, end, at, tone, "broad"))
        dots.append(Dot(begin, at, "text", tip_of(row), "bar", whiskers=span(x, needed, at, "muted")))
        dots.append(Dot(end, at, tone, tip_of(row), whiskers=span(x, accepted, at, tone)))
        names.append(RowName(at, f"{row.level} · {row.label}"))
    shown = "" if len(rows) == len(ranked) else f" {len(rows)} of {len(ranked)} are shown."
    return Plot(
        "accepted", "Accepted and needed",
        "Speculation pays where the dot (accepted) lies to the right of the bar (needed). The candidate in question "
        f"first, then the fastest.{shown}",
        Axis("accept length (tokens per verify)", x.x_ticks()), Axis(), lines.height,
        segments=tuple(segments), dots=tuple(dots), rows=tuple(names),
        keys=(
            Key("break-even", "text", "bar"), Key("accepted: pays", "good"), Key("accepted: loses", "bad"),
            Key("accepted: unclear", "unclear"),
        ),
    )  # fmt: skip
