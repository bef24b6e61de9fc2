"""How the search went: every launch on the study's clock, what the time went into, what was tried and what was not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spectune.counts import count
from spectune.printable import one_line
from spectune.report.material import Material
from spectune.report.plots import Plot
from spectune.report.sections.section import Section
from spectune.report.sections.timeline import PHASES, timeline
from spectune.report.wording import duration, number
from spectune.search import Stop
from spectune.space import text_of


@dataclass(frozen=True)
class Phase:
    """A share of the machine's time."""

    name: str
    tone: str
    seconds: str
    percent: float


@dataclass(frozen=True)
class Tried:
    """One parameter of the space.

    Attributes:
        name: Its name.
        values: (value, launches with it) in the order of the file.
    """

    name: str
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Search:
    """The section."""

    stop: str
    cost: str
    plot: Plot | None
    phases: tuple[Phase, ...]
    tried: tuple[Tried, ...]
    fixed: tuple[tuple[str, str], ...]
    forbidden: tuple[str, ...]
    learned: tuple[str, ...]


def search(material: Material) -> Section:
    """Return how the search went."""
    space = material.space
    content = Search(
        stop=_stop(material.told.stop),
        cost=_cost(material),
        plot=timeline(material),
        phases=tuple(_phases(material.told.seconds)),
        tried=tuple(_tried(material)),
        fixed=tuple(
            (name, material.shown(text_of(parameter.values[0])))
            for name, parameter in space.parameters.items()
            if parameter.is_fixed
        ),
        forbidden=tuple(material.shown(str(condition)) for condition in space.forbid),
        learned=tuple(exclusion.words for exclusion in material.told.exclusions),
    )
    return Section("search", "How the search went", content)


def _stop(stop: Stop | None) -> str:
    if stop is None:
        return "The study has not come to its end."
    return f"It ended because: {one_line(stop.reason).rstrip('.')}."


def _cost(material: Material) -> str:
    """Return what the launches cost; the time of one engine is that of all its GPUs."""
    total = material.told.seconds["total"]
    launches = count(len(material.trials), "launch")
    gpus = material.space.engine.gpus
    if not gpus:
        return f"{launches} in {duration(total)}."
    measured = material.told.seconds["measuring"] / total if total else 0.0
    return (
        f"{launches} in {duration(total)} on {count(gpus, 'GPU')}: {number(gpus * total / 3600.0, 3)} GPU-hours, "
        f"{measured:.0%} of them measuring."
    )


def _phases(seconds: Mapping[str, float]) -> Iterator[Phase]:
    total = seconds["total"] or 1.0
    for name, (tone, title) in PHASES.items():
        spent = seconds.get(name, 0.0)
        yield Phase(title, tone, duration(spent), round(100.0 * spent / total, 2))


def _tried(material: Material) -> Iterator[Tried]:
    """Yield what the space offers and how many launches had each of it."""
    for name, parameter in material.space.parameters.items():
        if parameter.is_fixed:
            continue
        taken = [record.candidate.values[name] for record in material.records if name in record.candidate.values]
        values = [(material.shown(text_of(value)), taken.count(value)) for value in parameter.values]
        yield Tried(name, tuple(values))
