"""What one user sees against what the server delivers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spectune.analysis.estimate import Estimate
from spectune.report.material import Material
from spectune.report.plots import Axis, Dot, Key, Plot, Scale, Segment, Shape, Words, cross, extents, path, tip_of
from spectune.report.sections.section import Section
from spectune.search.answer.summary_fields import CandidateLevel

HIGHLIGHTED = 6
"""Candidates that get a colour and a line of their own."""
SERIES = 8
"""Colours of series there are: baselines after the first take theirs from the end."""
AXES = {
    "decode_speed": "decode speed, one request (tok/s)",
    "output_throughput": "throughput, all requests (tok/s)",
    "cycle_ms": "cycle time (ms)",
}


def trade_off(material: Material) -> Section | None:
    """Return the Pareto plots; None where nothing was measured."""
    if not material.rows:
        return None
    found = (_levels(material), _objectives(material))
    return Section("trade-off", "Speed against throughput", tuple(plot for plot in found if plot is not None))


def highlighted(material: Material) -> dict[str, str]:
    """Return the candidates a reader should tell apart, by id, with their colours.

    The recommended one, the fastest baseline and the best speculation come first, then others that nothing beats: the
    best by each objective alone, and those in between.
    """
    best = material.baseline_at(material.space.objectives[0].level)
    wanted = [material.recommended, best and best.candidate_id, material.focus]
    optimal = [row for row in material.rows if row.candidate_id in material.pareto]
    for objective in material.space.objectives:
        there = {row.candidate_id: row.figure(objective.metric).est for row in optimal if row.level == objective.level}
        wanted += sorted(there, key=there.__getitem__, reverse=objective.direction == "maximize")[:1]
    wanted += [row.candidate_id for row in optimal]
    measured = {row.candidate_id for row in material.rows}
    chosen = [candidate for candidate in dict.fromkeys(wanted) if candidate in measured][:HIGHLIGHTED]
    plain = [candidate for candidate in chosen if candidate in material.baselines]
    speculating = [candidate for candidate in chosen if candidate not in material.baselines]
    tones = {candidate: f"s{number}" for number, candidate in enumerate(speculating, 1)}
    tones |= {candidate: f"s{SERIES + 1 - number}" for number, candidate in enumerate(plain)}
    return {candidate: "baseline" if candidate in plain[:1] else tones[candidate] for candidate in chosen}


def name_of(material: Material, candidate: str) -> str:
    """Return a candidate's name with what it is to the study."""
    recommended, optimal = candidate == material.recommended, candidate in material.pareto
    roles = ["recommended"] if recommended else ["Pareto-optimal"] if optimal else []
    roles += [doubt] if roles and (doubt := material.doubt(candidate)) else []
    return material.labels[candidate] + (f" ({', '.join(roles)})" if roles else "")


def shape_of(material: Material, candidate: str) -> Shape:
    """Return a candidate's symbol: whether it speculates is seen without colours."""
    return "diamond" if candidate in material.baselines else "circle"


def _levels(material: Material) -> Plot:
    rows = material.rows
    x = Scale.over(extents(row.figures.decode_speed for row in rows), holding=(0.0,))
    y = Scale.over(extents(row.figures.output_throughput for row in rows), holding=(0.0,))
    colours = highlighted(material)
    dots = [_level_dot(material, row, x, y, "muted") for row in rows if row.candidate_id not in colours]
    segments: list[Segment] = []
    words: list[Words] = []
    for candidate, tone in reversed(colours.items()):  # the recommended one is drawn over the others
        own = material.rows_of(candidate)
        style = "dotted" if candidate in material.baselines else "solid"
        segments += path([_place(row, x, y) for row in own], tone, style)
        dots += [_level_dot(material, row, x, y, tone) for row in own]
        if candidate == next(iter(colours)):
            words += [Words(*_place(row, x, y), row.level, dx=9, dy=-9, tone=tone) for row in own]
    keys = [
        Key(name_of(material, candidate), tone, shape_of(material, candidate), candidate in material.pareto)
        for candidate, tone in colours.items()
    ]
    others = {row.candidate_id for row in rows} - colours.keys()
    if others & material.pareto:
        keys.append(Key("others that are Pareto-optimal", "muted"))
    if others - material.pareto:
        keys.append(Key("other candidates", "muted", "point", filled=False))
    return Plot(
        "trade-off", "Every candidate at every level",
        "Further right, one user reads faster; further up, the server delivers more. A point per candidate and load "
        "level with its 95 % intervals; a line joins the levels of one candidate. Diamonds do not speculate; filled "
        "markers are Pareto-optimal: nothing beats them in every objective.",
        Axis(AXES["decode_speed"], x.x_ticks()), Axis(AXES["output_throughput"], y.y_ticks()), 400,
        segments=tuple(segments), dots=tuple(dots), words=tuple(words), keys=tuple(keys),
    )  # fmt: skip


def _place(row: CandidateLevel, x: Scale, y: Scale) -> tuple[float, float]:
    return x.across(row.figures.decode_speed.est), y.up(row.figures.output_throughput.est)


def _level_dot(material: Material, row: CandidateLevel, x: Scale, y: Scale, tone: str) -> Dot:
    dot = _dot(material, row, x, row.figures.decode_speed, y, row.figures.output_throughput, tone)
    of_no_note = tone == "muted" and not dot.filled and dot.shape == "circle"
    return replace(dot, shape="point") if of_no_note else dot


def _dot(material: Material, row: CandidateLevel, x: Scale, across: Estimate, y: Scale, up: Estimate, tone: str) -> Dot:
    candidate = row.candidate_id
    return Dot(
        x.across(across.est), y.up(up.est), tone, tip_of(row), shape_of(material, candidate),
        candidate in material.pareto, cross(x, across, y, up, tone),
    )  # fmt: skip


def _objectives(material: Material) -> Plot | None:
    """Return the first two objectives against each other, a point per candidate; None where there are no two."""
    wanted = material.space.objectives[:2]
    if len(wanted) < 2 or any(objective.metric not in AXES for objective in wanted):
        return None
    points = list(_both(material))
    if not points:
        return None
    x = Scale.over(extents(across for _, across, _ in points))
    y = Scale.over(extents(up for _, _, up in points))
    dots, front = [], []
    for row, across, up in points:
        tone = "baseline" if row.candidate_id in material.baselines else "accent"
        dots.append(_dot(material, row, x, across, y, up, tone))
        if row.candidate_id in material.pareto:
            front.append((dots[-1].x, dots[-1].y))
    titles = [f"{AXES[objective.metric]} at {objective.level}" for objective in wanted]
    return Plot(
        "objectives", "What was searched for",
        "The two objectives, a point per candidate with 95 % intervals. The dashed line joins those nothing beats.",
        Axis(titles[0], x.x_ticks()), Axis(titles[1], y.y_ticks()), 340,
        segments=tuple(path(sorted(front), "accent", "dashed")), dots=tuple(dots),
        keys=(
            Key("without speculation", "baseline", "diamond", filled=False), Key("speculating", "accent", filled=False),
            Key("Pareto-optimal", "accent"), Key("Pareto front", "accent", "dashed"),
        ),
    )  # fmt: skip


def _both(material: Material) -> Sequence[tuple[CandidateLevel, Estimate, Estimate]]:
    """Return each candidate measured in both objectives with its figures in them."""
    across, up = material.space.objectives[:2]
    found = []
    for candidate in dict.fromkeys(row.candidate_id for row in material.rows):
        first, second = material.row(candidate, across.level), material.row(candidate, up.level)
        if first is not None and second is not None:
            found.append((first, first.figure(across.metric), second.figure(up.metric)))
    return found
