"""All figures of all launches, to filter and to sort."""

from __future__ import annotations

from dataclasses import dataclass

from spectune.analysis.measurement import LevelMeasurement
from spectune.report.material import Material
from spectune.report.sections.section import Section
from spectune.report.wording import NOTHING, close_interval, interval, length, number

COLUMNS = (
    "accept length", "cycle ms", "tok/s one", "tok/s all", "first token ms (p95)", "between chunks ms (p95)",
    "requests", "failed", "offered/s", "achieved/s", "from cache", "graph",
)  # fmt: skip


@dataclass(frozen=True)
class FigureRow:
    """One launch at one level: figures in the order of the columns, each with its interval or nothing."""

    trial: int
    role: str
    status: str
    level: str
    label: str
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Figures:
    """The table."""

    columns: tuple[str, ...]
    rows: tuple[FigureRow, ...]


def figures(material: Material) -> Section | None:
    """Return a row per launch and level; None where nothing was measured."""
    rows = tuple(
        FigureRow(
            trial.trial, trial.role, trial.status, level.level, material.labels[trial.candidate.candidate_id],
            tuple(_cells(level)),
        )
        for trial in material.trials
        for level in trial.levels
    )  # fmt: skip
    return Section("figures", "All figures", Figures(COLUMNS, rows)) if rows else None


def _cells(level: LevelMeasurement) -> list[tuple[str, str]]:
    return [
        (length(level.accept_length.est), close_interval(level.accept_length)),
        *((number(one.est), interval(one)) for one in (level.cycle_ms, level.decode_speed, level.output_throughput)),
        (number(level.ttft_p95_ms, 3), ""),
        (number(level.itl_p95_ms, 3), ""),
        (str(level.n_requests), ""),
        (str(level.failed), ""),
        (number(level.offered_rate, 3), ""),
        (number(level.achieved_rate, 3), ""),
        (f"{level.cached_share:.0%}", ""),
        (NOTHING if level.graph_used is None else "yes" if level.graph_used else "no", ""),
    ]
