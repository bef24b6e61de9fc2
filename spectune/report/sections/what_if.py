"""Break-even charts with a slider: what a configuration would give at another accept length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spectune.analysis.break_even import decode_speed
from spectune.analysis.comparison import PAYS
from spectune.report.material import Material, speedup_of
from spectune.report.plots import Axis, Box, Dot, Key, Plot, Scale, Segment, Words, cross, path, tip_of
from spectune.report.wording import length, number
from spectune.search.answer.summary_fields import CandidateLevel
from spectune.search.evidence.figures import Figures

MOST_CURVES = 12
"""Candidates × levels that get a chart of their own; the table below has all."""


@dataclass(frozen=True)
class Curve:
    """One configuration at one level; the script moves the probe along its line.

    Attributes:
        label: Its name in the list of choices.
        cycle_ms: A whole draft and verify cycle.
        baseline: Best speed without speculation, tok/s.
        accept_length: As measured.
        even: Interval of the break-even: between its ends it is not known whether it pays.
        low: Least accept length of the slider and of the chart.
        high: Highest: the bound where one is known.
        top: Highest speed of the chart, tok/s.
        words: What holds at the measured accept length; the script says the same of the slider's.
        targets: Wanted speeds, tok/s.
        best: (accept length, speed, settings) of the fastest steps, top-k and draft tokens for such a drafter, by the
            study's fit; empty where it was not predicted.
        plot: The chart.
    """

    label: str
    cycle_ms: float
    baseline: float
    accept_length: float
    even: tuple[float, float]
    low: float
    high: float
    top: float
    words: str
    targets: tuple[float, ...]
    best: tuple[tuple[float, float, str], ...]
    plot: Plot

    @property
    def probe(self) -> tuple[float, float]:
        """Where the probe stands at first, percent."""
        speed = decode_speed(self.accept_length, self.cycle_ms)
        return Scale(self.low, self.high).across(self.accept_length), Scale(0.0, self.top).up(speed)


def curves(material: Material) -> tuple[Curve, ...]:
    """Return the charts of the candidate the report looks at, level by level, then of others, fastest first."""
    compared = [row for row in material.rows if row.figures.speedup is not None]
    ranked = sorted(compared, key=lambda row: (row.candidate_id != material.focus, -speedup_of(row)))
    own = [row for level in material.levels for row in ranked if row.level == level]
    chosen = [row for row in own if row.candidate_id == material.focus]
    chosen += [row for row in ranked if row.candidate_id != material.focus]
    targets = material.space.targets.decode_speed
    return tuple(
        _curve(number, row, tuple(targets), tuple(_best(material, row)))
        for number, row in enumerate(chosen[:MOST_CURVES])
    )


def _best(material: Material, row: CandidateLevel) -> Iterator[tuple[float, float, str]]:
    """Yield what a drafter of each quality would give with the settings that suit it best."""
    predicted = material.break_even.what_if
    if predicted is None or (predicted.candidate_id, predicted.level) != (row.candidate_id, row.level):
        return
    for at in predicted.by_accept_length:
        settings = f"{at.best_num_steps},{at.best_eagle_topk},{at.best_num_draft_tokens}"
        yield at.accept_length, at.best_speed, settings


def _curve(
    index: int, row: CandidateLevel, targets: Sequence[float], best: Sequence[tuple[float, float, str]]
) -> Curve:
    figures, name = row.figures, f"{row.label} at {row.level}"
    needed, baseline = figures.break_even, figures.baseline_speed
    assert needed is not None
    assert baseline is not None
    accepted, cycle = figures.accept_length, figures.cycle_ms.est
    bound = row.num_steps + 1.0 if row.num_steps else None
    low, high = 1.0, bound or max(accepted.est, needed.est) + 1.0
    top = Scale.over([decode_speed(high, cycle), baseline, *targets, *(b[1] for b in best)], holding=(0.0,)).high
    x, y = Scale(low, high), Scale(0.0, top)
    at = (x.across(accepted.est), y.up(decode_speed(accepted.est, cycle)))
    segments = [Segment(0, y.up(target), 100, y.up(target), "muted", "dotted") for target in targets]
    segments.append(Segment(0, y.up(baseline), 100, y.up(baseline), "baseline", "dashed"))
    segments += path([(0.0, y.up(decode_speed(low, cycle))), (100.0, y.up(decode_speed(high, cycle)))], "s1", "thick")
    segments += path([(x.across(length_), y.up(speed)) for length_, speed, _ in best], "s2", "dashed")
    even = (needed.lo, needed.hi) if needed.bounded else (x.low, x.high)  # open all over the chart where not known
    band = Box(x.across(even[0]), 0, round(x.across(even[1]) - x.across(even[0]), 2), 100, "baseline", faint=True)
    dots = [Dot(*at, "s1", tip_of(row), whiskers=cross(x, accepted, y, figures.decode_speed, "s1"))]
    if low <= needed.est <= high:
        tip = f"break-even {length(needed.est)}: as fast as the best launch without"
        dots.append(Dot(x.across(needed.est), y.up(baseline), "baseline", tip, "diamond"))
    words = [Words(100, y.up(target), f"{target:g} tok/s", "end", dy=-5, tone="muted") for target in targets]
    plot = Plot(
        f"what-if-{index}", name, "",
        Axis("accept length (tokens per verify)", x.x_ticks(8)),
        Axis("decode speed, one request (tok/s)", y.y_ticks()), 300,
        boxes=(band,), segments=tuple(segments), dots=tuple(dots), words=tuple(words),
        keys=(
            Key("speed at this cycle", "s1", "line"), Key("measured", "s1"),
            Key("best launch without", "baseline", "dashed"),
            Key("break-even with its interval", "baseline", "diamond"),
            *([Key("with the steps that suit such a drafter best (predicted)", "s2", "dashed")] if best else []),
            *([Key("wanted speeds", "muted", "dotted")] if targets else []),
        ),
    )  # fmt: skip
    return Curve(
        f"{row.label} · {row.level}", cycle, baseline, accepted.est, even, low, high, top,
        _said(figures, baseline), tuple(targets), tuple(best), plot,
    )  # fmt: skip


def _said(figures: Figures, baseline: float) -> str:
    """Return what the script says as the slider moves, for the measured accept length."""
    accepted = figures.accept_length.est
    speed = decode_speed(accepted, figures.cycle_ms.est)
    return (
        f"Accept length {length(accepted)} gives {number(speed)} tok/s, {speed / baseline:.2f} × the best launch "
        f"without: {PAYS[figures.verdict or 'unclear']}."
    )
