"""`spectune breakeven` for figures somebody has: arithmetic alone, so that it answers at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from spectune.analysis.break_even import break_even
from spectune.analysis.next_steps import next_steps
from spectune.cli.break_even_request import Asked, Given
from spectune.cli.exit_codes import ExitCode
from spectune.cli.terminal import print_json, print_line
from spectune.errors import SpectuneError


def run_break_even(given: Given, asked: Asked, *, targets: Sequence[float], as_json: bool) -> int:
    """Print the arithmetic, what follows from it and what to do next; returns the exit code.

    Raises:
        SpectuneError: Figures are missing, cannot be, or something was asked that takes a study.
    """
    if any(astuple(asked)):
        raise SpectuneError(
            "--candidate, --measure, --space, --drafter-points and --tokens-per-sample are about a STUDY: name one"
        )
    if given.baseline is None or given.accept_length is None or (given.cycle_ms is None and given.measured is None):
        raise SpectuneError(
            "give a STUDY (`spectune studies` lists those there are), or figures: --baseline, --accept, and --cycle-ms "
            "or --speed"
        )
    result = break_even(
        baseline_tok_s=given.baseline,
        cycle_ms=given.cycle_ms,
        accept_length=given.accept_length,
        num_steps=given.num_steps,
        targets=targets,
        measured_tok_s=given.measured,
    )
    steps = next_steps(result)
    if as_json:
        print_json(result.to_json() | {"next_steps": steps})
        return ExitCode.DONE
    numbered = [f"  {number}. {words}" for number, words in enumerate(steps, start=1)]
    for sentence in (*result.words, "what to do next:", *numbered):
        print_line(sentence)
    return ExitCode.DONE
