"""The launches of a running study as a table that fits its terminal, and the words for one of them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from spectune.analysis.measurement import LevelMeasurement
from spectune.cli.fitted_table import Column, fitted_table
from spectune.search import Role, Step, TrialRecord
from spectune.space import Candidate, SearchSpace

ROLE_WORDS = {Role.BASELINE: "baseline", Role.SEARCH: "", Role.DRIFT: "drift check", Role.CONFIRM: "confirm"}
LEAST_NAME, LEAST_OUTCOME = 20, 12  # characters that are left of a launch's name and of how it ended
CAPTION = "tok/s of one request, accept length τ; S,K,N: draft steps, top-k, draft tokens"


def launch_table(
    space: SearchSpace,
    records: Sequence[TrialRecord],
    running: Step | None,
    measured: Sequence[LevelMeasurement],
    width: int,
) -> Table:
    """Return a row for every launch, a line each whatever a failure has to say.

    Where there is no room, the words on how a launch ended are cut first, then its name; then levels are left out,
    the last one first, and named below.

    Args:
        space: The study's search space.
        records: The launches that are over.
        running: The one that is under way.
        measured: Its levels so far.
        width: Characters of a line.
    """
    levels = [level.name for level in space.workload.levels]
    columns = [
        Column("#", "right"),
        Column("launch", least=LEAST_NAME),
        *(Column(f"{level} tok/s (τ)", "right", leaves=-at) for at, level in enumerate(levels)),
        Column("", least=LEAST_OUTCOME),
    ]
    rows: list[list[str | Text]] = [
        [str(one.trial), Text(name(space, one.candidate, one.role)), *_cells(levels, one.levels), outcome(one)]
        for one in records
    ]
    if running is not None:
        named = Text(name(space, running.candidate, running.role), style="bold")
        rows.append([str(running.trial), named, *_cells(levels, measured), Text("…")])
    table = fitted_table(columns, rows, width)
    shown = {str(column.header) for column in table.columns}
    hidden = [level for level, column in zip(levels, columns[2:], strict=False) if column.heading not in shown]
    table.caption = CAPTION + (f"; no room here for {', '.join(hidden)}" if hidden else "")
    table.caption_justify = "left"
    return table


def name(space: SearchSpace, candidate: Candidate, role: Role) -> str:
    """Return a launch's name: what it is, and why it was made if not for the search."""
    words = ROLE_WORDS[role]
    return f"{space.label(candidate)} ({words})" if words else space.label(candidate)


def outcome(record: TrialRecord) -> Text:
    """Return how a launch ended, in a line."""
    if record.failure is not None:
        return Text(" ".join(f"{record.failure.failure_class}: {record.failure.message}".split()), style="red")
    if record.suspect:
        first = record.suspect[0]
        return Text(f"suspect: {first.field} is {first.got}, not {first.wanted}", style="yellow")
    return Text("ok", style="green")


def _cells(names: Sequence[str], levels: Sequence[LevelMeasurement]) -> list[str]:
    """Return each level's speed per request and its accept length, empty where it was not measured."""
    by_name = {level.level: level for level in levels}
    return [_cell(by_name.get(name)) for name in names]


def _cell(level: LevelMeasurement | None) -> str:
    return "" if level is None else f"{level.decode_speed.est:.1f} ({level.accept_length.est:.2f})"
