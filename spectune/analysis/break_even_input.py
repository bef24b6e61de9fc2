"""Which inputs of the break-even arithmetic cannot be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from spectune.counts import count
from spectune.errors import InputProblems, Problem

SMALLEST, LARGEST = 0.001, 1_000_000
"""Outside of these, neither a speed in tok/s nor a cycle in ms is a measurement."""


def check_inputs(
    *,
    baseline_tok_s: float | None = None,
    cycle_ms: float | None = None,
    accept_length: float | None = None,
    num_steps: int | None = None,
    targets: Sequence[float] = (),
    measured_tok_s: float | None = None,
) -> None:
    """Refuse what no engine can have measured, of what is given.

    Raises:
        InputProblems: Every input that cannot be, all at once.
    """
    figures = (
        ("baseline (tok/s)", baseline_tok_s),
        ("cycle (ms)", cycle_ms),
        ("accept length", accept_length),
        *(("target (tok/s)", target) for target in targets),
        ("measured speed (tok/s)", measured_tok_s),
    )
    positive = [(name, value) for name, value in figures if value is not None]
    problems = [
        Problem(f"{name} must be a positive number, but got {value:g}")
        for name, value in positive
        if not (math.isfinite(value) and value > 0.0)
    ]
    problems += [
        Problem(f"{name} must be from {SMALLEST:g} to {LARGEST:,}, but got {value:g}")
        for name, value in positive
        if math.isfinite(value) and (value > LARGEST or 0.0 < value < SMALLEST)
    ]
    problems += [Problem(message) for message in _impossible(accept_length, num_steps)]
    if problems:
        raise InputProblems(problems)


def _impossible(accept_length: float | None, num_steps: int | None) -> Iterator[str]:
    if accept_length is not None and 0.0 < accept_length < 1.0:
        yield (
            f"accept length counts the bonus token and is at least 1.0, but got {accept_length:g}; "
            "if this is an accept rate, the length is 1 + rate × (draft tokens − 1)"
        )
    if num_steps is not None and num_steps < 1:
        yield f"steps must be at least 1, but got {num_steps}; without a step there is no speculation"
    elif num_steps is not None and accept_length is not None and accept_length > num_steps + 1:
        yield (
            f"{count(num_steps, 'step')} can give an accept length of {num_steps + 1} at most, but got "
            f"{accept_length:g}; check the steps the engine really used"
        )
