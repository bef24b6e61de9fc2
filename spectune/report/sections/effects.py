"""What each searched parameter does to the objectives, as far as the launches tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from spectune.report.material import Material
from spectune.report.plots import Axis, Dot, Key, Plot, RowName, Rows, Scale, Segment, extents, span
from spectune.report.sections.section import MOST_ROWS, Section
from spectune.search.guided.effects import Effect


@dataclass(frozen=True)
class EffectRow:
    """One value of a parameter against that of the best candidate."""

    parameter: str
    among: str
    change: str
    objective: str
    says: str


@dataclass(frozen=True)
class Effects:
    """A chart per objective, and all effects as a table."""

    plots: tuple[Plot, ...]
    rows: tuple[EffectRow, ...]


def effects(material: Material) -> Section | None:
    """Return what parameters do; None where the study has too few launches to tell."""
    told = material.told.effects
    if not told:
        return None
    directions = {(o.metric, o.level): o.direction for o in material.space.objectives}
    plots: list[Plot] = []
    for number, ((metric, level), direction) in enumerate(directions.items()):
        own = [one for one in told if (one.objective, one.level) == (metric, level)]
        plots += _plot(f"effects-{number}", f"On {metric.replace('_', ' ')} at {level}", own, direction)
    rows = tuple(
        EffectRow(one.parameter, one.among, one.instead, f"{one.objective.replace('_', ' ')} at {one.level}", one.says)
        for one in told
    )
    return Section("effects", "What each parameter does", Effects(tuple(plots), rows))


def _plot(name: str, title: str, told: Sequence[Effect], direction: str) -> Iterator[Plot]:
    """Yield the strongest effects on one objective; nothing where none is known."""
    known = [one for one in told if one.basis != "nothing"]
    ranked = sorted(known, key=lambda one: -abs(one.change.est))[:MOST_ROWS]
    if not ranked:
        return
    x = Scale.over(extents(one.change.scaled(100.0) for one in ranked), holding=(0.0,))
    x = Scale(min(x.low, -1.0), max(x.high, 1.0))
    lines = Rows(len(ranked))
    dots, names = [], []
    for index, one in enumerate(ranked):
        at, tone = lines.at(index), _tone(one, direction)
        change, name_ = one.change.scaled(100.0), f"{one.parameter}: {one.instead}"
        filled, tip = one.basis == "launches", f"{name_}\nin {one.among}: {one.says}"
        dots.append(Dot(x.across(change.est), at, tone, tip, filled=filled, whiskers=span(x, change, at, tone)))
        names.append(RowName(at, name_))
    yield Plot(
        name, title,
        f"What changing one value does in {_contexts(told)}, all else equal as far as that is legal, by the models "
        "fitted to all launches, with 95 % intervals. Strongest first.",
        Axis("change (%)", x.x_ticks()), Axis(), lines.height,
        segments=(Segment(x.across(0.0), 0, x.across(0.0), 100, "text", "dashed"),), dots=tuple(dots),
        rows=tuple(names),
        keys=(Key("better", "good"), Key("worse", "bad"), Key("not told from nothing", "muted"),
              Key("predicted: no two launches differ in just that", "text", filled=False)),
    )  # fmt: skip


def _contexts(told: Iterable[Effect]) -> str:
    """Return which candidates values are changed in; where some do without speculation, only the drafts' are not."""
    plain, speculative = ({one.among for one in told if one.speculates is kind} for kind in (False, True))
    return ", a draft setting in ".join([*plain, *speculative])


def _tone(one: Effect, direction: str) -> str:
    """Return whether the whole interval is better, worse, or neither."""
    if one.change.lo <= 0.0 <= one.change.hi:
        return "muted"
    return "good" if (one.change.lo > 0.0) == (direction == "maximize") else "bad"
