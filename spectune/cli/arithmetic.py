"""`spectune breakeven` for figures somebody has."""

from __future__ import annotations

from collections.abc import Sequence

from spectune.analysis.break_even import break_even
from spectune.cli.terminal import print_json, print_line


def print_break_even(
    *,
    baseline: float,
    cycle_ms: float | None,
    accept_length: float,
    num_steps: int | None,
    targets: Sequence[float],
    measured: float | None,
    as_json: bool,
) -> None:
    """Print the arithmetic and what follows from it.

    Raises:
        InputProblems: For figures that cannot be.
    """
    result = break_even(
        baseline_tok_s=baseline,
        cycle_ms=cycle_ms,
        accept_length=accept_length,
        num_steps=num_steps,
        targets=targets,
        measured_tok_s=measured,
    )
    if as_json:
        print_json(result.to_json())
        return
    for sentence in result.words:
        print_line(sentence)
