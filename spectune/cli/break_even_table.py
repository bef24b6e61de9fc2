"""A study's break-even in the terminal, 100 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from spectune.analysis.why import BreakEvenOfStudy, BreakEvenRow, CycleParts, Training, Waterfall, WhatIf
from spectune.cli.answer_rows import MARKS, SHOWN_OF_THE_REST
from spectune.cli.terminal import OUT, print_line
from spectune.counts import count

# level, class, accept length, needed, possible, speedup, cycle, gap; between the last two draft, verify, host, rest
WIDTHS = (6, 10, 18, 18, 4, 9, 8, 2)
PARTS = (7, 7, 6, 6)
PART_NAMES = ("draft", "verify", "host", "rest")
WIDTH, COLUMN = 100, 12
LONGEST_STEP = 60
METHOD = """\
accept: tokens per verify; needed: to be as fast as the best launch without speculation, accept / speedup; of: the most
these settings can accept; speedup: of one request; 95 % intervals, those of needed from launches relaunched beside it
that launch is judged by all launches of it and of those about as fast, so it may count as faster than measured"""
PARTS_METHOD = """\
draft, verify, host: ms of the cycle, told apart by a regression over all launches; incl.: within the verify; rest: what
that regression does not explain of the cycle measured"""


def print_break_even_of(answer: BreakEvenOfStudy) -> None:
    """Print what the study says, the candidate it is about first."""
    if answer.missing is not None:
        print_line(answer.missing)
        return
    whole = [row for row in answer.rows if row.prompt_class is None]
    chosen = next(r for r in whole if (r.candidate_id, r.level) == (answer.candidate_id, answer.level))
    OUT.print(Text(f"{chosen.label} at {chosen.level} ({answer.why})", style="bold"), soft_wrap=True)
    for sentence in answer.words:
        print_line(f"  {sentence}")
    _print_rows(answer.rows, chosen.candidate_id, answer.words)
    falls = next(w for w in answer.waterfalls if (w.candidate_id, w.level) == (chosen.candidate_id, chosen.level))
    _print_waterfall(falls)
    _print_causes(answer)
    if answer.what_if is not None:
        _print_what_if(answer.what_if)


def print_training(trained: Training) -> None:
    """Print what more training samples would do, and what they cost."""
    _heading("With more training", "accept")
    for samples, length in trained.curve[::4]:
        OUT.print(f"{f'{samples:,} samples':<76}{length.words:>24}", markup=False)
    for sentence in trained.words:
        print_line(sentence)


def _print_rows(rows: Sequence[BreakEvenRow], first: str, said: Sequence[str]) -> None:
    """Print every candidate, the one in question first, then those with the best speedups.

    The parts of a cycle have columns where they are told of any; what keeps them from being told of others is said.

    Args:
        rows: Of all candidates.
        first: The candidate in question.
        said: What was said of it already.
    """
    groups: dict[str, list[BreakEvenRow]] = {}
    for row in rows:
        groups.setdefault(row.candidate_id, []).append(row)
    ranked = sorted(groups.values(), key=lambda group: (group[0].candidate_id != first, -group[0].speedup.est))
    shown = ranked[: 1 + SHOWN_OF_THE_REST]
    parts = [row.parts for group in shown for row in group if row.parts is not None]
    told = any(_is_told(one) for one in parts)
    OUT.print()
    names = PART_NAMES if told else ()
    OUT.print(_line("level", "class", "accept", "needed", "of", "speedup", "cycle", *names, ""), style="dim")
    for group in shown:
        OUT.print(Text(group[0].label, style="bold"))
        for row in group:
            OUT.print(Text(_row(row, with_parts=told)).append(row.verdict, style=MARKS[row.verdict]))
    if len(shown) < len(ranked):
        OUT.print(f"{len(ranked) - len(shown)} more candidates: --json", style="dim")
    OUT.print(METHOD, style="dim", markup=False)
    if told:
        OUT.print(PARTS_METHOD, style="dim", markup=False)
    for why in dict.fromkeys(one.words for one in parts if not _is_told(one) and one.words not in said):
        OUT.print(f"{'?: ' if told else ''}{why}", style="dim", markup=False)


def _row(row: BreakEvenRow, *, with_parts: bool) -> str:
    bound = "" if row.bound is None else str(row.bound)
    speedup = f"{row.speedup.est:.2f}"
    accept = row.accept_length.cell(2)
    if row.prompt_class is not None:
        none = ("",) * len(PARTS) if with_parts else ()
        return _line("", row.prompt_class, accept, "", bound, speedup, "", *none, "")
    even, cycle = row.break_even.cell(2), f"{row.cycle_ms.est:.2f}"
    parts = _parts(row.parts) if with_parts else ()
    return _line(row.level, "all", accept, even, bound, speedup, cycle, *parts, "")


def _is_told(parts: CycleParts) -> bool:
    return parts.draft_ms is not None and parts.verify_ms is not None


def _parts(parts: CycleParts | None) -> tuple[str, ...]:
    """The parts of a cycle and what is left of it, so that they add up to it."""
    if parts is None or parts.draft_ms is None or parts.verify_ms is None:
        return ("?",) * len(PARTS)
    host = "incl." if parts.host_ms is None else f"{parts.host_ms.est:.2f}"
    return (f"{parts.draft_ms.est:.2f}", f"{parts.verify_ms.est:.2f}", host, f"{parts.unexplained_ms:+.2f}")


def _print_waterfall(falls: Waterfall) -> None:
    _heading(f"From no speculation to {falls.label} at {falls.level}", "ms per token", "tok/s")
    ends = {falls.steps[0].name, falls.steps[-1].name}
    for step in falls.steps:
        change = "" if step.name in ends else f"{step.tok_s:+z.1f}"
        words = step.words if len(step.words) <= LONGEST_STEP else "this candidate"
        OUT.print(f"{words:<64}{step.reached_ms:>12.2f}{step.reached_tok_s:>12.1f}{change:>12}", markup=False)


def _print_causes(answer: BreakEvenOfStudy) -> None:
    if not answer.causes:
        return
    _heading("What one request loses, each alone, in tok/s")
    for cause in answer.causes:
        gain = "?" if cause.tok_s_lost is None else f"{'up to ' * cause.at_most}{cause.tok_s_lost:.1f}"
        helps = "" if cause.actions else "; nothing known to help"
        print_line(f"{gain:>14}  {cause.cause}: {cause.evidence}{helps}")
    if answer.actions:
        _heading("What to do next, cheapest first")
        for words, cost in answer.actions:
            print_line(f"{cost:>16}: {words}")


def _print_what_if(what_if: WhatIf) -> None:
    _heading(f"With another drafter, at {what_if.level}", "tok/s", "best S,K,N", "tok/s")
    for at in what_if.by_accept_length:
        best = f"{at.best_num_steps},{at.best_eagle_topk},{at.best_num_draft_tokens}"
        lead = f"accept length {at.accept_length:.2f} with these settings"
        OUT.print(f"{lead:<64}{at.speed:>12.1f}{best:>12}{at.best_speed:>12.1f}", markup=False)
    _heading("With this drafter, at another load", "tok/s", "without", "best S,K,N", "tok/s")
    for load in what_if.by_load:
        best = (
            f"{load.best_num_steps},{load.best_eagle_topk},{load.best_num_draft_tokens}"
            if load.best_num_steps
            else "none"
        )
        lead = f"{count(load.concurrency, 'request')} in flight{'' if load.measured else ', predicted'}"
        figures = f"{load.speed:>12.1f}{load.baseline_speed:>12.1f}{best:>12}{load.best_speed:>12.1f}"
        OUT.print(f"{lead:<52}{figures}", markup=False)
    for sentence in what_if.words:
        OUT.print(sentence, style="dim", markup=False, soft_wrap=True)


def _heading(title: str, *columns: str) -> None:
    """Print a title and the names of the columns below it, beside it where there is room."""
    OUT.print()
    names = "".join(f"{name:>{COLUMN}}" for name in columns)
    if len(title) + len(names) > WIDTH:
        OUT.print(Text(title, style="bold"), soft_wrap=True)
        title = ""
    OUT.print(Text(f"{title:<{WIDTH - len(names)}}", style="bold").append(names, style="dim"))


def _line(*cells: str) -> str:
    """A row of the table; a cell that is as wide as its column or wider is still told from the one before it."""
    widths = WIDTHS if len(cells) == len(WIDTHS) else (*WIDTHS[:-1], *PARTS, WIDTHS[-1])
    padded = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return "".join(cell if not cell or cell[0] == " " else f" {cell}" for cell in padded)
