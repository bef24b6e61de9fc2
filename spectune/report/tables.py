"""Rows of the report's tables, as text ready to be escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectune.machine import Difference
from spectune.report.wording import NOTHING, close_interval, count, estimate, length, number, plain, times

Row = Mapping[str, Any]

VERDICTS = {"pays": "pays", "loses": "loses", "unclear": "unclear"}


@dataclass(frozen=True)
class BreakEvenRow:
    """One speculative candidate at one level: what it accepts, what it would have to, and the arithmetic of both."""

    label: str
    level: str
    accept_length: str
    accept_interval: str
    break_even: str
    cycle: str
    speedup: str
    speedup_interval: str
    same_mode: str
    verdict: str
    arithmetic: str
    speed: str
    bound: str
    targets: tuple[str, ...]
    confirmed: bool
    pareto: bool


@dataclass(frozen=True)
class TrialRow:
    """One launch.

    Attributes:
        figures: Decode speed and throughput per level, in the order of the levels.
        failure: (class, the message with the log's own words, excerpt); None unless it failed.
        suspect: (argument, asked, got).
        notes: Remarks of the launch and its levels.
    """

    trial: int
    role: str
    label: str
    why: str
    status: str
    started_at: str
    startup: str
    figures: tuple[tuple[str, str], ...]
    failure: tuple[str, str, str] | None
    suspect: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]


def break_even_rows(rows: Iterable[Row], pareto: frozenset[str], targets: Sequence[float]) -> list[BreakEvenRow]:
    """Return a row per speculative candidate and level, fastest first within a level.

    Args:
        rows: Entries of the summary's `candidates` for all prompt classes.
        pareto: Ids of candidates nothing beats.
        targets: Wanted decode speeds, tok/s.
    """
    speculative = [row for row in rows if row.get("num_steps") is not None or row.get("speedup")]
    levels = list(dict.fromkeys(row["level"] for row in speculative))
    ranked = sorted(speculative, key=lambda row: (levels.index(row["level"]), -(row.get("speedup") or [0.0])[0]))
    return [_break_even_row(row, pareto, targets) for row in ranked]


def _break_even_row(row: Row, pareto: frozenset[str], targets: Sequence[float]) -> BreakEvenRow:
    accepted, needed, cycle = row["accept_length"], row.get("break_even"), row.get("cycle_ms")
    arithmetic = speed = NOTHING
    if cycle:
        speed = f"{length(accepted[0])} / {number(cycle[0])} ms = {number(accepted[0] / cycle[0] * 1000.0)} tok/s"
    if needed and cycle:
        # The baseline that the break-even stands for, so that the three figures always belong together.
        baseline = needed[0] / cycle[0] * 1000.0
        arithmetic = f"{number(baseline)} tok/s × {number(cycle[0])} ms = {length(needed[0])}"
    steps = row.get("num_steps")
    return BreakEvenRow(
        label=row["label"],
        level=row["level"],
        accept_length=length(accepted[0]),
        accept_interval=close_interval(accepted),
        break_even=length(needed[0]) if needed else NOTHING,
        cycle=f"{estimate(cycle)} ms" if cycle else NOTHING,
        speedup=times(row.get("speedup")),
        speedup_interval=close_interval(row.get("speedup")),
        same_mode=f"{ratio:.2f} × without, in the same settings" if (ratio := row.get("same_mode_ratio")) else "",
        verdict=VERDICTS.get(str(row.get("verdict")), "no baseline"),
        arithmetic=arithmetic,
        speed=speed,
        bound=f"{count(steps, 'step')} can give {steps + 1} at most" if steps else "",
        targets=tuple(_target(target, cycle, accepted[0], steps) for target in targets) if cycle else (),
        confirmed=bool(row.get("confirmed")),
        pareto=row["candidate_id"] in pareto,
    )


def _target(target: float, cycle: Sequence[float], accepted: float, steps: int | None) -> str:
    needed = target * cycle[0] / 1000.0
    if needed <= accepted:
        reach = "reached"
    elif steps is not None and needed > steps + 1:
        reach = "out of reach"
    else:
        reach = f"{needed - accepted:.2f} more than now"
    return f"{target:g} tok/s needs {length(needed)} ({reach})"


def trial_rows(trials: Iterable[Row], labels: Mapping[str, str], levels: Sequence[str]) -> list[TrialRow]:
    """Return a row per launch.

    Args:
        trials: Contents of the `result.json` files.
        labels: Names of candidates by their id.
        levels: The columns.
    """
    return [_trial_row(trial, labels, levels) for trial in trials]


def _trial_row(trial: Row, labels: Mapping[str, str], levels: Sequence[str]) -> TrialRow:
    at = {level["level"]: level for level in trial["levels"]}
    failure = None
    if trial["failure_class"] is not None:
        failure = (trial["failure_class"], trial["failure_message"] or "", trial["failure_excerpt"] or "")
    return TrialRow(
        trial=trial["trial"],
        role=trial["role"],
        label=labels[trial["candidate_id"]],
        why=trial["why"],
        status=trial["status"],
        started_at=trial["started_at"],
        startup=f"{trial['startup_s']:.1f} s",
        figures=tuple(
            (estimate(at[level]["decode_speed"]), estimate(at[level]["output_throughput"]))
            if level in at
            else (NOTHING, NOTHING)
            for level in levels
        ),
        failure=failure,
        suspect=tuple((str(entry["field"]), plain(entry["wanted"]), plain(entry["got"])) for entry in trial["suspect"]),
        notes=tuple(_notes(trial)),
    )


def _notes(trial: Row) -> Iterator[str]:
    """Yield what a reader should know of a launch: remarks of the launch, its machine and its levels."""
    yield from trial.get("notes", ())
    for change in trial.get("environment_changes", ()):
        if change["matters"]:
            yield f"the machine was not as it was when the study began: {Difference(**change)}"
    for level in trial["levels"]:
        yield from (f"{level['level']}: {note}" for note in level.get("notes", ()))


def class_table(rows: Iterable[Row]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return prompt classes, and per candidate and level its accept length for each of them."""
    by_class = [row for row in rows if row["class"] != "all"]
    classes = sorted({row["class"] for row in by_class})
    table: dict[tuple[str, str], dict[str, str]] = {}
    for row in by_class:
        table.setdefault((row["label"], row["level"]), {})[row["class"]] = length(row["accept_length"][0])
    return classes, [
        (f"{label} · {level}", [found.get(name, NOTHING) for name in classes])
        for (label, level), found in table.items()
    ]
