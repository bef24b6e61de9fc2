"""A study's answer in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from spectune.answer import Answer
from spectune.cli.terminal import OUT, clock, print_json

MARKS = {"pays": "green", "loses": "red", "unclear": "yellow"}


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print the verdict, the Pareto set with its break-even figures, and where the files are."""
    if as_json:
        print_json(dict(answer.summary))
        return
    summary = answer.summary
    if summary["simulated"]:
        OUT.print("SIMULATED: no figure here was measured on a real engine", style="bold yellow")
    OUT.print()
    OUT.print(Text(summary["sentence"], style="bold"))
    OUT.print(_pareto_table(summary))
    OUT.print(Text(_account(summary), style="dim"))
    for name, count in summary["failures"].items():
        OUT.print(f"{count} launches failed: {name}", markup=False)
    for line in _files(answer):
        OUT.print(line, markup=False, soft_wrap=True)


def _pareto_table(summary: Mapping[str, Any]) -> Table:
    table = Table(title="Pareto-optimal candidates", title_justify="left", box=None, pad_edge=False, title_style="bold")
    table.add_column("candidate")
    for column in ("level", "tok/s a request", "tok/s in all", "speedup", "accept length", "break-even", "cycle ms"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("")
    shown = None
    for row in summary["candidates"]:
        if row["class"] != "all" or not set(row["trials"]) & set(summary["pareto"]):
            continue
        label = row["label"] + (" *" if row["confirmed"] else "")
        table.add_row(
            "" if label == shown else label,
            row["level"],
            _figure(row["decode_speed"], 1),
            _figure(row["output_throughput"], 0),
            _interval(row["speedup"]),
            _figure(row["accept_length"], 2),
            _figure(row["break_even"], 2),
            _figure(row["cycle_ms"], 2),
            Text(row["verdict"] or "", style=MARKS.get(row["verdict"] or "", "")),
        )
        shown = label
    if any(row["confirmed"] for row in summary["candidates"]):
        table.caption = "* launched again, in turns with the baseline; figures are means over those launches"
        table.caption_justify = "left"
    return table


def _figure(estimate: list[float] | None, digits: int) -> str:
    return "" if estimate is None else f"{estimate[0]:.{digits}f}"


def _interval(estimate: list[float] | None) -> str:
    return "" if estimate is None else f"{estimate[0]:.2f} ({estimate[1]:.2f}–{estimate[2]:.2f})"


def _account(summary: Mapping[str, Any]) -> str:
    seconds = summary["seconds"]
    reason = summary["stop"]["reason"] if summary["stop"] else "the study is not finished"
    return (
        f"{reason}; {clock(seconds['total'])}: engine start-up {clock(seconds['startup'])}, "
        f"measuring {clock(seconds['measuring'])}, shutdown {clock(seconds['shutdown'])}, own {seconds['own']:.1f} s"
    )


def _files(answer: Answer) -> list[str]:
    others = [exported.shell for exported in answer.exported if exported.shell != answer.recommended_file]
    lines = [f"other launch file: {file}" for file in others]
    if answer.recommended_file is not None:
        lines.append(f"launch file: {answer.recommended_file}")
    return [*lines, f"report: {answer.report}"]
