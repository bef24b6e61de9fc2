"""Speed at every load level, and where speculation stops paying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectune.analysis.comparison import PAYS
from spectune.report.material import Material
from spectune.report.plots import Axis, Dot, Key, Plot, Scale, Segment, Tick, extents, path, rise, tip_of
from spectune.report.sections.section import Section
from spectune.report.sections.trade_off import highlighted, name_of, shape_of
from spectune.report.wording import number, speedup_interval, times
from spectune.search.answer.summary_fields import CandidateLevel


@dataclass(frozen=True)
class OpenLevel:
    """One launch under requests that come by the clock."""

    label: str
    trial: int
    level: str
    offered: str
    achieved: str
    share: str


@dataclass(frozen=True)
class Load:
    """Speed by load.

    Attributes:
        about: The candidate in question.
        words: Where it pays, a sentence a level.
        plot: Decode speed at each level.
        open_levels: What was offered and achieved where requests come by the clock.
    """

    about: str
    words: tuple[str, ...]
    plot: Plot
    open_levels: tuple[OpenLevel, ...]


def load(material: Material) -> Section | None:
    """Return speed by load; None where a single level was measured, and nothing was offered by the clock there."""
    offered = tuple(open_levels(material))
    if len(material.levels) < 2 and not offered:
        return None
    words = [_sentence(row) for level in material.levels if (row := material.row(material.focus, level))]
    about = "" if material.focus is None else f"{material.labels[material.focus]}:"
    limit = material.break_even.load_limit
    words += [] if limit is None else [limit.words]
    return Section("load", "Speed by load", Load(about, tuple(words), _plot(material), offered))


def open_levels(material: Material) -> Sequence[OpenLevel]:
    """Return what was offered and achieved at levels with a request rate, a row per launch."""
    return [
        OpenLevel(
            material.labels[trial.candidate.candidate_id], trial.trial, level.level, number(level.offered_rate, 3),
            number(level.achieved_rate, 3), f"{level.achieved_rate / level.offered_rate:.0%}",
        )
        for trial in material.trials
        for level in trial.levels
        if level.offered_rate and level.achieved_rate is not None
    ]  # fmt: skip


def _sentence(row: CandidateLevel) -> str:
    verdict, speedup = row.figures.verdict, row.figures.speedup
    if verdict is None:
        return f"{row.level}: nothing to compare with"
    spread = speedup_interval(speedup)
    said = f"{row.level}: {PAYS[verdict]}, {times(speedup)} the best launch without"
    return f"{said} ({spread})" if spread else said


def _plot(material: Material) -> Plot:
    colours = highlighted(material)
    rows = [row for row in material.rows if row.candidate_id in colours]
    y = Scale.over(extents(row.figures.decode_speed for row in rows), holding=(0.0,))
    x = Scale(-0.5, len(material.levels) - 0.5)
    place = {level: float(number) for number, level in enumerate(material.levels)}
    segments: list[Segment] = []
    dots: list[Dot] = []
    for candidate, tone in reversed(colours.items()):
        own = material.rows_of(candidate)
        places = [(x.across(place[row.level]), y.up(row.figures.decode_speed.est)) for row in own]
        segments += path(places, tone, "dotted" if candidate in material.baselines else "solid")
        dots += [
            Dot(
                *at, tone, tip_of(row), shape_of(material, candidate),
                whiskers=rise(y, row.figures.decode_speed, at[0], tone),
            )
            for at, row in zip(places, own, strict=True)
        ]  # fmt: skip
    return Plot(
        "load", "Decode speed at every level",
        "What one user sees as the load grows: cN are N requests at a time, rN are N requests per second.",
        Axis("load level", tuple(Tick(x.across(place[level]), level) for level in material.levels)),
        Axis("decode speed, one request (tok/s)", y.y_ticks()), 300,
        segments=tuple(segments), dots=tuple(dots),
        keys=tuple(
            Key(name_of(material, candidate), tone, shape_of(material, candidate))
            for candidate, tone in colours.items()
        ),
    )  # fmt: skip
