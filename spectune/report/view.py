"""Everything the page shows, worked out from a study's summary and records; the template only lays it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectune.engines.protocol import LaunchCommand
from spectune.errors import SpectuneError
from spectune.export import Launch, command_text, secret_values
from spectune.export.header import one_line, warning_of
from spectune.machine import overview
from spectune.report import wording
from spectune.report.blotting import blotted, blotted_yaml
from spectune.report.chart_list import chart_list
from spectune.report.charts import Chart
from spectune.report.tables import BreakEvenRow, TrialRow, break_even_rows, class_table, trial_rows
from spectune.search.records import TrialRecord

Summary = Mapping[str, Any]

DECISIONS = {
    "speculation": ("good", "Speculate"),
    "no_speculation": ("bad", "Do not speculate"),
    "tie": ("unclear", "A tie: do not speculate"),
    "undecided": ("unclear", "Undecided"),
}


@dataclass(frozen=True)
class Command:
    """The recommended launch: its name, text to paste, and what was left out of it."""

    label: str
    trial: int
    text: str
    withheld: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A share of the wall time."""

    name: str
    seconds: str
    percent: float


@dataclass(frozen=True)
class ReportView:
    """The content of the page, in reading order."""

    study: str
    engine: str
    warning: str | None
    finished: bool
    tone: str
    decision: str
    sentence: str
    words: tuple[str, ...]
    tiles: tuple[tuple[str, str, str], ...]
    command: Command | None
    command_problem: str | None
    charts: tuple[Chart, ...]
    levels: tuple[str, ...]
    break_even: tuple[BreakEvenRow, ...]
    classes: tuple[str, ...]
    class_rows: tuple[tuple[str, list[str]], ...]
    trials: tuple[TrialRow, ...]
    failures: tuple[tuple[str, int], ...]
    learned: tuple[str, ...]
    cost: tuple[Part, ...]
    total: str
    stop: str
    environment: tuple[tuple[str, str], ...]
    space_text: str


def build_view(
    summary: Summary, records: Sequence[TrialRecord], environment: Mapping[str, Any], space_text: str
) -> ReportView:
    """Work out the page; secrets the launches were given are blotted out of all of it.

    Args:
        summary: Content of `summary.json`.
        records: All launches, failed and suspect ones too.
        environment: Content of `environment.json`.
        space_text: The search space as the user gave it.
    """
    secrets = secret_values(record.command for record in records)
    told = blotted(summary, secrets)
    trials = blotted([record.to_json() for record in records], secrets)
    labels = {row["candidate_id"]: row["label"] for row in told["candidates"]}
    labels = {r.candidate.candidate_id: blotted(r.candidate.label, secrets) for r in records} | labels
    baselines = frozenset(record.candidate.candidate_id for record in records if not record.candidate.speculative)
    pareto = frozenset(r.candidate.candidate_id for r in records if r.trial in set(told["pareto"]))
    overall = [row for row in told["candidates"] if row["class"] == "all"]
    levels = tuple(dict.fromkeys(level["level"] for trial in trials for level in trial["levels"]))
    tone, decision = DECISIONS.get(told["verdict"], DECISIONS["undecided"])
    targets = (told.get("targets") or {}).get("decode_speed") or []
    classes, class_rows = class_table(told["candidates"])
    command, problem = _command(summary["recommended"])
    return ReportView(
        study=told["study"],
        engine=told["engine"],
        warning=warning_of(told["engine"], simulated=bool(told["simulated"])),
        finished=bool(told["finished"]),
        tone=tone,
        decision=decision,
        sentence=told["sentence"],
        words=tuple(told.get("words") or ()),
        tiles=tuple(_tiles(told, trials, overall)),
        command=command,
        command_problem=problem,
        charts=tuple(chart_list(told, trials, labels=labels, pareto=pareto, baselines=baselines)),
        levels=levels,
        break_even=tuple(break_even_rows(overall, pareto, targets)),
        classes=tuple(classes),
        class_rows=tuple(class_rows),
        trials=tuple(trial_rows(trials, labels, levels)),
        failures=tuple(sorted(told["failures"].items())),
        learned=tuple(exclusion["words"] for exclusion in told.get("exclusions") or ()),
        cost=tuple(_cost(told["seconds"])),
        total=wording.duration(told["seconds"]["total"]),
        stop=_stop(told.get("stop")),
        environment=tuple(overview(blotted(environment, secrets))),
        space_text=blotted(blotted_yaml(space_text), secrets),
    )


def _command(recommended: Mapping[str, Any] | None) -> tuple[Command | None, str | None]:
    if recommended is None:
        return None, None
    launch = LaunchCommand(tuple(recommended["argv"]), recommended["env"], tuple(recommended["unset"]))
    try:
        kept = Launch.of(launch)
    except SpectuneError as error:
        return None, str(error)
    withheld = (*kept.withheld_env, *(f"--{name}" for name in kept.withheld_options))
    secrets = secret_values([launch])
    return Command(blotted(recommended["label"], secrets), recommended["trial"], command_text(launch), withheld), None


def _tiles(told: Summary, trials: Sequence[Any], rows: Sequence[Any]) -> list[tuple[str, str, str]]:
    """Return (figure, unit or meaning, remark) for the figures worth a glance."""
    tiles = []
    first = told["objectives"][0]["level"] if told["objectives"] else None
    recommended = (told.get("recommended") or {}).get("candidate_id")
    compared = [row for row in rows if row.get("speedup") and first in (None, row["level"])]
    if compared:
        best = max(compared, key=lambda row: (row["candidate_id"] == recommended, row["speedup"][0]))
        spread = wording.close_interval(best["speedup"])
        tiles.append(
            (wording.times(best["speedup"]), f"{best['label']} against the best baseline, at {best['level']}", spread)
        )
        tiles.append(
            (
                wording.length(best["accept_length"][0]),
                "its accept length",
                f"break-even {wording.length(best['break_even'][0])}",
            )
        )
    failed = sum(trial["status"] == "failed" for trial in trials)
    suspect = sum(trial["status"] == "suspect" for trial in trials)
    tiles.append(
        (str(len(trials)), "launches" if len(trials) != 1 else "launch", f"{failed} failed, {suspect} suspect")
    )
    effect = told.get("detectable_effect")
    if effect is not None:
        tiles.append((f"{effect:.1%}", "smallest gain these launches could show", ""))
    return tiles


def _cost(seconds: Mapping[str, float]) -> list[Part]:
    names = {
        "startup": "engine start-up",
        "checking": "checking its answers",
        "measuring": "measuring",
        "shutdown": "engine shutdown",
        "own": "spectune itself",
    }
    total = seconds["total"] or 1.0
    return [
        Part(title, wording.duration(spent := max(seconds.get(name, 0.0), 0.0)), round(100.0 * spent / total, 2))
        for name, title in names.items()
    ]


def _stop(stop: Mapping[str, Any] | None) -> str:
    if stop is None:
        return "The study has not come to its end."
    figure = stop.get("figure")
    shown = "" if figure is None else f" ({wording.plain(figure)})"
    return f"It ended because: {one_line(str(stop['reason']))}{shown}."
