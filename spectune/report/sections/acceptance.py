"""What the drafter gets right: by position in the draft, by kind of prompt, by length of the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectune.analysis.strata import Stratum, worst_in_words
from spectune.counts import count
from spectune.report.material import Material, speedup_of
from spectune.report.plots import Axis, Box, Dot, Key, Plot, RowName, Rows, Scale, Segment, extents, path, span
from spectune.report.sections.break_even import VERDICTS
from spectune.report.sections.section import Section
from spectune.report.sections.trade_off import highlighted, name_of
from spectune.report.wording import NOTHING, length
from spectune.search.answer.summary_fields import CandidateLevel
from spectune.search.storage.records import Status

MOST_CURVES = 8


@dataclass(frozen=True)
class ClassTable:
    """Accept length of every candidate and level by prompt class."""

    classes: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Acceptance:
    """The section.

    Attributes:
        about: The candidate in question.
        words: Its worst class and its worst context length, at each level.
        plots: By position, and by kind of request.
        table: By class, for all candidates; None where there are no classes.
    """

    about: str
    words: tuple[str, ...]
    plots: tuple[Plot, ...]
    table: ClassTable | None


def acceptance(material: Material) -> Section | None:
    """Return where drafts are accepted; None where nothing speculated."""
    found = [(level, kinds) for level in material.levels if (kinds := _strata(material, level))]
    words = [f"{level}: {sentence}." for level, kinds in found for sentence in worst_in_words(kinds)]
    about = "" if material.focus is None else f"{material.labels[material.focus]}:"
    plots = [_by_position(material), *(_by_kind(material, level, kinds) for level, kinds in found[:1])]
    shown = tuple(plot for plot in plots if plot is not None)
    table = _table(material.rows)
    if not shown and table is None:
        return None
    return Section("acceptance", "What is accepted", Acceptance(about, tuple(words), shown, table))


def _strata(material: Material, level: str) -> list[Stratum]:
    """Return the kinds of request of the candidate in question, where there is a baseline."""
    return [stratum for stratum in material.break_even.strata if stratum.level == level]


def _by_position(material: Material) -> Plot | None:
    ranked = sorted(material.rows, key=speedup_of, reverse=True)
    candidates = dict.fromkeys([*highlighted(material), *(row.candidate_id for row in ranked)])
    curves = [(candidate, curve) for candidate in candidates if (curve := _curve(material, candidate))][:MOST_CURVES]
    colours = {candidate: f"s{number}" for number, (candidate, _) in enumerate(curves, 1)}
    if not curves:
        return None
    most = max(len(curve) for _, curve in curves)
    x, y = Scale(0.5, most + 0.5), Scale(0.0, 1.0)
    segments: list[Segment] = []
    dots: list[Dot] = []
    for candidate, curve in reversed(curves):
        places = [(x.across(position), y.up(share)) for position, share in enumerate(curve, 1)]
        segments += path(places, colours[candidate])
        dots += [
            Dot(*at, colours[candidate], f"{material.labels[candidate]}\nposition {position}: {share:.0%}")
            for position, (at, share) in enumerate(zip(places, curve, strict=True), 1)
        ]
    return Plot(
        "positions", "Acceptance by position",
        "The share of verifies that accepted at least so many drafted tokens. A further token is worth drafting only "
        f"while it is still accepted often enough. At {material.levels[0]}.",
        Axis("drafted token", tuple(tick for tick in x.x_ticks(10) if "." not in tick.label)),
        Axis("share of verifies", Scale(0.0, 100.0).y_ticks(5, " %")), 300, segments=tuple(segments), dots=tuple(dots),
        keys=tuple(Key(name_of(material, candidate), colours[candidate]) for candidate, _ in curves),
    )  # fmt: skip


def _curve(material: Material, candidate: str) -> Sequence[float]:
    """Return the survival curve at the first level of a candidate's first launch that has one."""
    for trial in material.trials:
        if trial.candidate.candidate_id == candidate and trial.status is Status.OK:
            level = trial.level(material.levels[0])
            if level is not None and level.per_position:
                return level.per_position
    return ()


def _by_kind(material: Material, level: str, kinds: Sequence[Stratum]) -> Plot | None:
    if len(kinds) < 2 or material.focus is None:
        return None
    even = kinds[0].break_even
    x = Scale.over(extents([even, *(kind.accept_length for kind in kinds)]), holding=(1.0,), room=0.1)
    lines = Rows(len(kinds))
    dots, names = [], []
    for index, kind in enumerate(kinds):
        at, accepted, tone = lines.at(index), kind.accept_length, VERDICTS[kind.verdict]
        requests = count(kind.requests, "request")
        tip = f"{kind.words}\naccept length {accepted.words}\n{requests}"
        dots.append(Dot(x.across(accepted.est), at, tone, tip, whiskers=span(x, accepted, at, tone)))
        names.append(RowName(at, f"{kind.words} ({requests})"))
    needed, low, high = map(x.across, (even.est, even.lo, even.hi))
    line = Segment(needed, 0, needed, 100, "text", "dashed")
    band = Box(low, 0, round(high - low, 2), 100, "baseline", faint=True)
    return Plot(
        "kinds", f"By kind of request, at {level}",
        f"{material.labels[material.focus]} in all its launches that count: accept length with 95 % intervals; the "
        "line with its band is the break-even.",
        Axis("accept length (tokens per verify)", x.x_ticks()), Axis(), lines.height,
        boxes=(band,), segments=(line,), dots=tuple(dots), rows=tuple(names),
        keys=(
            Key("break-even with its interval", "text", "dashed"), Key("pays", "good"), Key("loses", "bad"),
            Key("unclear", "unclear"),
        ),
    )  # fmt: skip


def _table(rows: Sequence[CandidateLevel]) -> ClassTable | None:
    classes = tuple(sorted({name for row in rows for name in row.by_class}))
    lines = tuple(
        (
            f"{row.label} · {row.level}",
            tuple(length(row.by_class[name].est) if name in row.by_class else NOTHING for name in classes),
        )
        for row in rows
        if row.by_class
    )
    return ClassTable(classes, lines) if lines else None
