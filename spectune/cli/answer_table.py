"""A study's answer in the terminal."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.text import Text

from spectune.analysis.break_even import break_even_arithmetic
from spectune.analysis.estimate import Estimate
from spectune.analysis.why.arithmetic import needed
from spectune.answer import Answer
from spectune.cli.answer_rows import MARKS, answer_rows
from spectune.cli.effects_table import effect_lines
from spectune.cli.terminal import OUT, clock, print_json, print_simulated, row_of
from spectune.counts import count
from spectune.search import Summary

LEGEND = """\
tok/s, speedup: one request's, against the best configuration without speculation; in all: of all requests together
accept, needed: tokens per verify, and how many it takes to break even; S,K,N: draft steps, top-k, draft tokens
the best without speculation is judged by all launches of it and of those about as fast, so it may count as faster"""
UNCONFIRMED = """\
not confirmed: only the launches that it was found by say so, and the best of many is partly luck; `spectune check FILE`
launches an exported script again, in turns with the best baseline"""
TOO_SHORT = "(too short): not measured long enough to say how exactly; a longer workload.level_time_limit would do"
# level, tok/s of one request, of all, speedup with interval, accept length measured and needed, cycle, gap
WIDTHS = (6, 9, 8, 20, 8, 8, 10, 2)
_line = partial(row_of, WIDTHS)


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print the verdict, the Pareto set with its break-even figures, and where the files are."""
    if as_json:
        print_json(answer.summary.to_json())
        return
    summary = answer.summary
    if summary.simulated:
        print_simulated()
    OUT.print()
    OUT.print(Text(summary.sentence, style="bold"))
    for line in summary.details:
        OUT.print(f"  - {line}", markup=False)
    for line in _machine_lines(summary):
        OUT.print(line, style="yellow", markup=False)
    _print_candidates(summary)
    for line in (*graph_lines(summary), *_target_lines(summary), *effect_lines(summary.effects)):
        OUT.print(line, markup=False)
    if (lent := summary.warm_start) is not None:
        begun = f"begun with {count(len(lent.evidence), 'launch')} of study {lent.study} ({lent.why})"
        OUT.print(begun, markup=False)
    OUT.print(Text(_account(summary), style="dim"))
    for name, failed in summary.failures.items():
        OUT.print(f"{count(failed, 'launch')} failed: {name}", markup=False)
    for exclusion in summary.exclusions:
        OUT.print(f"learned: {exclusion.words}", markup=False)
    for line in _files(answer):
        OUT.print(line, markup=False, soft_wrap=True)


def _print_candidates(summary: Summary) -> None:
    """Print what is worth a look, a heading per candidate, a line per level, 80 columns; then a line on the rest."""
    shown, others = answer_rows(summary)
    if not shown:
        return
    OUT.print(_line("level", "tok/s", "in all", "speedup", "accept", "needed", "cycle ms", ""), style="dim")
    for one in shown:
        OUT.print(Text(one.heading, style="bold green" if one.recommended else "bold"))
        for at in one.levels:
            figures = (
                at.level,
                _figure(at.figures.decode_speed, 1),
                _figure(at.figures.output_throughput, 0),
                _interval(at.figures.speedup),
                _figure(at.figures.accept_length, 2),
                _figure(at.figures.break_even, 2),
                _figure(at.figures.cycle_ms, 2),
            )
            verdict = at.figures.verdict or ""
            OUT.print(Text(_line(*figures, "")).append(verdict, style=MARKS.get(verdict, "")))
    for line in others:
        OUT.print(line)
    OUT.print(LEGEND, style="dim", markup=False)
    speedups = [at.figures.speedup for one in shown for at in one.levels]
    if any("not confirmed" in one.heading for one in shown):
        OUT.print(UNCONFIRMED, style="dim", markup=False)
    if any(speedup is not None and not speedup.bounded for speedup in speedups):
        OUT.print(TOO_SHORT, style="dim", markup=False)


def _target_lines(summary: Summary) -> list[str]:
    """Return what the targets ask of the candidate in question."""
    question, targets = summary.in_question, summary.targets["decode_speed"]
    if question is None or not targets:
        return []
    at = (question.candidate_id, question.level)
    steps, of_it = next((r.num_steps, r.figures) for r in summary.candidates if (r.candidate_id, r.level) == at)
    cycle, baseline, even = of_it.cycle_ms, of_it.baseline_speed, of_it.break_even
    assert baseline is not None
    assert even is not None, "what is in question was compared"
    asked = needed(
        targets, baseline_tok_s=baseline, cycle_ms=cycle, accept_length=of_it.accept_length.est,
        bound=steps and steps + 1,
    )  # fmt: skip
    arithmetic = f"{break_even_arithmetic(baseline, cycle.est)} = {even.est:.2f}"
    lines = [f"break-even is {arithmetic}", *(one.words for one in asked)]
    return [f"{question.label} at {question.level} ({question.why}):", *(f"  {line}" for line in lines)]


def graph_lines(summary: Summary) -> list[str]:
    """Return what of the speculation that the verdict rests on ran outside CUDA graphs, and what helps."""
    found = summary.outside_graphs
    if found is None:
        return []
    helps = "; ".join(f"{cost}: {words}" for words, cost in found.actions)
    return [f"outside CUDA graphs, {found.label}: {found.evidence}" + (f" ({helps})" if helps else "")]


def _machine_lines(summary: Summary) -> list[str]:
    """Return what the machine did while it was measured: jumps, and a drift that was taken out."""
    lines = [jump.words for jump in summary.jumps]
    if (drift := summary.drift) is not None and drift.corrected:
        lines.append(drift.words)
    return lines


def _figure(estimate: Estimate | None, digits: int) -> str:
    return "" if estimate is None else f"{estimate.est:.{digits}f}"


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return estimate.cell(2) if estimate.bounded else f"{estimate.est:.2f} (too short)"


def _account(summary: Summary) -> str:
    seconds = summary.seconds
    reason = summary.stop.reason if summary.stop else "the study is not finished"
    kind = "simulated " if summary.simulated else ""
    return (
        f"{reason}; {kind}{clock(seconds['total'])}: engine start-up {clock(seconds['startup'])}, "
        f"checks {clock(seconds['checking'])}, measuring {clock(seconds['measuring'])}, "
        f"shutdown {clock(seconds['shutdown'])}, own {seconds['own']:.1f} s"
    )


def _files(answer: Answer) -> list[str]:
    labels = {one.candidate_id: one.label for one in answer.summary.candidates}
    others = [exported for exported in answer.exported if exported.shell != answer.recommended_file]
    lines = [f"also exported: {labels[one.candidate_id]}: {one.shell}" for one in others]
    if (recommended := answer.summary.recommended) is not None and answer.recommended_file is not None:
        lines.append(f"recommended: {recommended.label}")
        lines.append(f"launch file: {answer.recommended_file}")
    lines += [pick_outdated(file) for file in answer.outdated]
    return [*lines, f"report: {answer.report}"]


def pick_outdated(file: Path) -> str:
    """Say that a file of an earlier pick is no longer what its name says."""
    return f"outdated: {file}, picked before the last launches; the same --pick gives another one now"
