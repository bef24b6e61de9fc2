"""A study's answer in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rich.text import Text

from spectune.answer import Answer
from spectune.cli.terminal import OUT, clock, print_json

# level, tok/s of one request, of all, speedup with interval, accept length measured and needed, cycle, gap
WIDTHS = (6, 9, 8, 20, 8, 8, 10, 2)
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
    _print_pareto(summary)
    OUT.print(Text(_account(summary), style="dim"))
    for name, count in summary["failures"].items():
        OUT.print(f"{count} launch{'es' if count > 1 else ''} failed: {name}", markup=False)
    for line in _files(answer):
        OUT.print(line, markup=False, soft_wrap=True)


def _print_pareto(summary: Mapping[str, Any]) -> None:
    """Print the Pareto set, a heading per candidate and a line per level; fits 80 columns."""
    shown = [r for r in summary["candidates"] if r["class"] == "all" and set(r["trials"]) & set(summary["pareto"])]
    if not shown:
        return
    OUT.print(_line("level", "tok/s", "in all", "speedup", "accept", "needed", "cycle ms", ""), style="dim")
    for label, levels in groupby(shown, key=lambda row: row["label"] + (" *" if row["confirmed"] else "")):
        OUT.print(Text(label, style="bold"))
        for row in levels:
            figures = (
                row["level"],
                _figure(row["decode_speed"], 1),
                _figure(row["output_throughput"], 0),
                _interval(row["speedup"]),
                _figure(row["accept_length"], 2),
                _figure(row["break_even"], 2),
                _figure(row["cycle_ms"], 2),
            )
            verdict = row["verdict"] or ""
            OUT.print(Text(_line(*figures, "")).append(verdict, style=MARKS.get(verdict, "")))
    if any(row["confirmed"] for row in shown):
        OUT.print("* launched again in turns with the baseline; figures are means over those launches", style="dim")


def _line(*cells: str) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


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
