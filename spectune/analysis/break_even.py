"""Does speculation pay? The arithmetic of one cycle against one plain decoding step, and what it says in words.

With T the seconds of a whole draft+verify cycle, τ the accept length and v₀ the best speed without speculation
(tok/s one request sees): speed = τ/T, speedup = τ/(T·v₀), break-even τ* = T·v₀. Speculation pays iff τ > τ*.
Source of all of it: DESIGN.md, section 1; the cost model is Leviathan et al., arXiv 2211.17192, theorem 3.8.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from spectune.analysis.break_even_input import check_inputs
from spectune.counts import count

CONTRADICTION_SHARE = 0.03
"""Measured and computed speed further apart than this contradict each other; below it, it is rounding."""


def break_even_accept_length(baseline_tok_s: float, cycle_ms: float) -> float:
    """Accept length at which speculation is exactly as fast as the baseline: τ* = v₀·T."""
    return baseline_tok_s * cycle_ms / 1000.0


def break_even_arithmetic(baseline_tok_s: float, cycle_ms: float) -> str:
    """v₀ × T in words, with as many digits as it takes for the product of what is printed to round to τ*."""
    wanted = f"{break_even_accept_length(baseline_tok_s, cycle_ms):.2f}"
    for digits in range(4, 16):
        speed, cycle = (_significant(figure, digits) for figure in (baseline_tok_s, cycle_ms))
        if f"{break_even_accept_length(float(speed), float(cycle)):.2f}" == wanted:
            break
    return f"{speed} tok/s × {cycle} ms"


def _significant(figure: float, digits: int) -> str:
    """A figure with so many significant digits, never in powers of ten."""
    return f"{figure:.{max(digits, len(str(int(figure))))}g}"


def more_needed(needed: float, accept_length: float) -> float:
    """What is missing between two accept lengths as they are printed, with two decimals."""
    return round(round(needed, 2) - round(accept_length, 2), 2)


def decode_speed(accept_length: float, cycle_ms: float) -> float:
    """Tokens per second one request sees: τ/T."""
    return accept_length / (cycle_ms / 1000.0)


def cycle_ms_of(accept_length: float, speed_tok_s: float) -> float:
    """The whole cycle that a measured speed implies: T = τ/v, in milliseconds."""
    return accept_length / speed_tok_s * 1000.0


def break_even_from_speedup(accept_length: float, speedup: float) -> float:
    """Break-even from two measured figures: τ* = τ/speedup, which needs no cycle time."""
    return accept_length / speedup


def impossible(break_even: float) -> str | None:
    """Say that no tuned baseline has this break-even; None where one may."""
    if round(break_even, 2) >= 1.0:
        return None
    return (
        f"a break-even of {break_even:.2f} is impossible for a tuned baseline: a cycle cannot be shorter than a plain "
        "step; measure the baseline again"
    )


@dataclass(frozen=True, slots=True)
class Target:
    """What one wanted speed asks of the drafter.

    Attributes:
        speed_tok_s: The wanted tokens per second of one request.
        accept_length: Accept length that gives it at the measured cycle.
        verdict: "reached", "short" (the drafter must improve), "perfect drafter" (exactly the bound) or
            "out of reach" (beyond the bound, whatever the drafter).
        words: The same as a sentence.
    """

    speed_tok_s: float
    accept_length: float
    verdict: str
    words: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A measured speed that the given cycle and accept length do not produce.

    Attributes:
        measured_tok_s: The speed that was measured.
        implied_cycle_ms: The cycle that this speed means.
        missing_ms: Implied minus given cycle; positive: time the given cycle leaves out (draft, host).
        break_even: Break-even accept length at the implied cycle: the one to believe.
        words: The same as a sentence.
    """

    measured_tok_s: float
    implied_cycle_ms: float
    missing_ms: float
    break_even: float
    words: str


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The verdict on one configuration at one load.

    Attributes:
        baseline_tok_s: Best measured speed of one request without speculation.
        cycle_ms: Whole draft+verify cycle, as given.
        accept_length: Mean tokens per verify, bonus token included.
        num_steps: Draft steps per cycle, if known.
        break_even: τ* at the given cycle.
        break_even_cycle_ms: The cycle at which it would be exactly as fast as the baseline at this accept length.
        speed_tok_s: τ/T at the given cycle.
        change: The speed that counts against the baseline: −0.27 = 27 % slower. The measured speed counts where
            there is one, otherwise `speed_tok_s`.
        pays: Whether that speed is above the baseline.
        bound: Highest accept length possible, S+1 for a chain; None if the steps are unknown.
        targets: One entry per wanted speed.
        contradiction: Set when the inputs do not fit together.
        words: Everything as sentences, in reading order.
    """

    baseline_tok_s: float
    cycle_ms: float
    accept_length: float
    num_steps: int | None
    break_even: float
    break_even_cycle_ms: float
    speed_tok_s: float
    change: float
    pays: bool
    bound: int | None
    targets: tuple[Target, ...]
    contradiction: Contradiction | None
    words: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return asdict(self)


def break_even(
    *,
    baseline_tok_s: float,
    cycle_ms: float | None,
    accept_length: float,
    num_steps: int | None = None,
    targets: Iterable[float] = (),
    measured_tok_s: float | None = None,
) -> BreakEven:
    """Work out whether speculation pays, what each target asks for, and whether the inputs fit together.

    Args:
        baseline_tok_s: Best speed of one request without speculation, tok/s.
        cycle_ms: Whole draft+verify cycle at the same load, milliseconds; None where it is to follow from accept length
            and measured speed, of which there must be one then.
        accept_length: Mean tokens per verify, bonus token included; from 1 to num_steps + 1.
        num_steps: Draft steps per cycle (S); None leaves the bound out.
        targets: Wanted speeds of one request, tok/s.
        measured_tok_s: Speed that was measured with this configuration; it is checked against the rest.

    Raises:
        InputProblems: Every input that cannot be, all at once.
    """
    wanted = tuple(targets)
    check_inputs(
        baseline_tok_s=baseline_tok_s,
        cycle_ms=cycle_ms,
        accept_length=accept_length,
        num_steps=num_steps,
        targets=wanted,
        measured_tok_s=measured_tok_s,
    )
    given = cycle_ms is not None
    if cycle_ms is None:
        assert measured_tok_s is not None, "a cycle that is not given follows from a speed"
        cycle_ms = cycle_ms_of(accept_length, measured_tok_s)
    bound = None if num_steps is None else num_steps + 1
    needed = break_even_accept_length(baseline_tok_s, cycle_ms)
    longest = cycle_ms_of(accept_length, baseline_tok_s)
    speed = decode_speed(accept_length, cycle_ms)
    contradiction = _contradiction(baseline_tok_s, cycle_ms, accept_length, speed, measured_tok_s)
    actual = speed if measured_tok_s is None else measured_tok_s
    rows = tuple(_target(target, cycle_ms, accept_length, bound) for target in wanted)
    words = [
        f"break-even: {break_even_arithmetic(baseline_tok_s, cycle_ms)} = accept length {needed:.2f}",
        f"at accept length {accept_length:.4g} a cycle of {cycle_ms:.4g} ms gives {speed:.1f} tok/s"
        if given
        else f"accept length {accept_length:.4g} at {speed:.1f} tok/s means a cycle of {cycle_ms:.4g} ms",
        _verdict(actual / baseline_tok_s - 1.0, measured=measured_tok_s is not None),
        f"at accept length {accept_length:.4g} any cycle below {longest:.3g} ms pays",
    ]
    if bound is not None and needed >= bound:
        words.append(
            f"{count(bound - 1, 'step')} can give an accept length of {bound} at most: at this cycle no drafter makes "
            "speculation pay"
        )
    elif bound is not None:
        words.append(
            f"{count(bound - 1, 'step')} can give an accept length of {bound} at most: "
            f"{decode_speed(bound, cycle_ms):.1f} tok/s at this cycle"
        )
    if (doubt := impossible(needed)) is not None:
        words.append(doubt)
    if contradiction is not None:
        words.append(contradiction.words)
    words.extend(row.words for row in rows)
    return BreakEven(
        baseline_tok_s=baseline_tok_s,
        cycle_ms=cycle_ms,
        accept_length=accept_length,
        num_steps=num_steps,
        break_even=needed,
        break_even_cycle_ms=longest,
        speed_tok_s=speed,
        change=actual / baseline_tok_s - 1.0,
        pays=actual > baseline_tok_s,
        bound=bound,
        targets=rows,
        contradiction=contradiction,
        words=tuple(words),
    )


def _verdict(change: float, *, measured: bool) -> str:
    source = "measured" if measured else "computed"
    if math.isclose(change, 0.0, abs_tol=5e-4):
        return f"speculation is exactly as fast as the baseline ({source})"
    compared = "faster" if change > 0 else "slower"
    pays = "pays" if change > 0 else "does not pay"
    return f"speculation {pays}: {abs(change):.0%} {compared} than the baseline ({source})"


def _target(speed: float, cycle_ms: float, accept_length: float, bound: int | None) -> Target:
    needed = break_even_accept_length(speed, cycle_ms)
    lead = f"{speed:g} tok/s needs an accept length of {needed:.2f}"
    most = "" if bound is None else f"{count(bound - 1, 'step')} can give {bound} at most"
    if bound is not None and needed > bound and not math.isclose(needed, bound):
        verdict, why = "out of reach", f"out of reach: {most}"
    elif needed <= accept_length or math.isclose(needed, accept_length):
        verdict, why = "reached", "reached"
    elif bound is not None and math.isclose(needed, bound):
        verdict, why = "perfect drafter", f"only a perfect drafter: {most}"
    else:
        verdict, why = "short", f"{more_needed(needed, accept_length):.2f} more than now"
    return Target(speed, needed, verdict, f"{lead} ({why})")


def _contradiction(
    baseline: float, cycle_ms: float, accept_length: float, computed: float, measured: float | None
) -> Contradiction | None:
    if measured is None or abs(measured / computed - 1.0) <= CONTRADICTION_SHARE:
        return None
    implied = cycle_ms_of(accept_length, measured)
    missing = implied - cycle_ms
    needed = break_even_accept_length(baseline, implied)
    meaning = "draft and host time the given cycle leaves out" if missing > 0 else "the given cycle is too long"
    words = (
        f"these inputs contradict each other: {measured:g} tok/s at accept length {accept_length:g} means a cycle of "
        f"{implied:.1f} ms, not {cycle_ms:g}: {abs(missing):.1f} ms {'missing' if missing > 0 else 'too many'} "
        f"({meaning}); break-even is then {needed:.2f}"
    )
    return Contradiction(measured, implied, missing, needed, words)
