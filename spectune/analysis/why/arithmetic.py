"""The arithmetic of one measured cycle: targets with intervals, what a free drafter would give, contradictions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from spectune.analysis.break_even import (
    BreakEven,
    Target,
    break_even,
    break_even_accept_length,
    break_even_arithmetic,
    impossible,
)
from spectune.analysis.estimate import Estimate
from spectune.analysis.level_notes import ROUTES_DISAGREE
from spectune.analysis.why.cycle import CycleParts, Discrepancy, Needed, VerifyAlone
from spectune.counts import count

FREE_DRAFT_MATTERS = 0.02
"""Draft and host below this share of a cycle are not worth a sentence."""
ROUNDING = 1e-6


def needed(
    targets: Sequence[float], *, baseline_tok_s: float, cycle_ms: Estimate, accept_length: float, bound: int | None
) -> tuple[Needed, ...]:
    """What each target asks of the drafter at a cycle."""
    worked = _arithmetic(baseline_tok_s, cycle_ms.est, accept_length, bound, targets)
    return tuple(_needed(one, cycle_ms, accept_length, bound) for one in worked.targets)


def _needed(one: Target, cycle_ms: Estimate, accept_length: float, bound: int | None) -> Needed:
    """What a target asks for: a cycle that is not known well enough decides neither that it is reached nor that not."""
    low, high = (break_even_accept_length(one.speed_tok_s, end) for end in (cycle_ms.lo, cycle_ms.hi))
    asked = Estimate.around(one.accept_length, low, high)
    beyond = one.verdict == "out of reach" and bound is not None and asked.lo <= bound
    if not beyond and not (one.verdict == "reached" and asked.hi > accept_length):
        return Needed(one.speed_tok_s, asked, one.verdict != "out of reach", one.verdict, one.words)
    against = f"{accept_length:.2f} is accepted"
    if beyond and bound is not None:
        against = f"{count(bound - 1, 'step')} can give {bound} at most"
    known = (
        f"anything from {asked.lo:.2f} to {asked.hi:.2f} by the interval of the cycle, so it is unclear whether it is "
        f"{'out of reach' if beyond else 'reached'}"
        if math.isfinite(asked.hi)
        else "the cycle was not measured long enough to be sure"
    )
    words = f"{one.speed_tok_s:g} tok/s needs an accept length of {one.accept_length:.2f}, and {against}; {known}"
    return Needed(one.speed_tok_s, asked, True, "unclear", words)


def verify_alone(
    parts: CycleParts | None,
    targets: Sequence[float],
    *,
    baseline_tok_s: float,
    cycle_ms: float,
    accept_length: float,
    bound: int | None,
) -> VerifyAlone | None:
    """What would be if draft and host cost nothing; None where they are not told apart from the verify, or negligible.

    Args:
        parts: Of the cycle.
        targets: Wanted speeds, tok/s.
        baseline_tok_s: The best baseline.
        cycle_ms: The whole cycle, as measured.
        accept_length: As measured.
        bound: Highest accept length possible.
    """
    if parts is None or parts.draft_ms is None:
        return None
    missing = parts.draft_ms.est + (parts.host_ms.est if parts.host_ms is not None else 0.0)
    alone = cycle_ms - missing
    if alone <= 0.0 or missing < FREE_DRAFT_MATTERS * cycle_ms:
        return None
    worked = _arithmetic(baseline_tok_s, round(alone, 2), accept_length, bound, targets)
    lead, rest = ("without draft and host a cycle would take", "draft and host take")
    if parts.host_ms is None:
        lead, rest = ("without the draft a cycle would take", "the draft takes")
    asked = needed(
        targets, baseline_tok_s=baseline_tok_s, cycle_ms=Estimate.exactly(round(alone, 2)),
        accept_length=accept_length, bound=bound,
    )  # fmt: skip
    words = (
        f"{lead} {alone:.1f} ms: {break_even_arithmetic(baseline_tok_s, round(alone, 2))} would be a break-even of "
        f"{worked.break_even:.2f}, and {worked.speed_tok_s:.1f} tok/s at this accept length; {rest} {missing:.1f} ms "
        "more"
    )
    then = [f"{one.target:g} tok/s would take {one.accept_length.est:.2f} ({one.verdict})" for one in asked]
    return VerifyAlone(
        alone, worked.break_even, worked.speed_tok_s, missing, asked, "; ".join([words, *then])
    )  # fmt: skip


def discrepancies(
    *,
    cycle_ms: float,
    inter_chunk_ms: float,
    decode_cycle_ms: float | None,
    engine_cycle_ms: float | None,
    accept_length: float,
    break_even: float,
    bound: int | None,
) -> Iterator[Discrepancy]:
    """Figures of a level that contradict each other.

    Args:
        cycle_ms: Accept length / decode speed.
        inter_chunk_ms: Mean time between two chunks.
        decode_cycle_ms: The cycle without the standstills of other requests' prefills.
        engine_cycle_ms: By those intervals of the engine's own log that hold no prefill.
        accept_length: As measured.
        break_even: As it follows.
        bound: Highest accept length possible.
    """
    routes = (
        (
            "inter_chunk",
            cycle_ms,
            inter_chunk_ms,
            "the time between two chunks is",
            "a chunk holds several cycles",
        ),
        ("engine_step", decode_cycle_ms, engine_cycle_ms, "the engine's own log says", "its log counts other requests"),
    )
    for name, mine, other, says, otherwise in routes:
        if mine and other and abs(mine / other - 1.0) > ROUTES_DISAGREE:
            gap = mine - other
            yield Discrepancy(
                name,
                gap,
                f"accept length / speed means a cycle of {mine:.1f} ms, {says} {other:.1f}: {abs(gap):.1f} ms "
                f"{'missing' if gap > 0 else f'too many, unless {otherwise}'}",
            )
    if bound is not None and accept_length > bound * (1.0 + ROUNDING):
        yield Discrepancy(
            "bound", None, f"accept length {accept_length:.2f} is more than the {bound} that these settings can reach"
        )
    if (doubt := impossible(break_even)) is not None:
        yield Discrepancy("break_even", None, doubt)


def _arithmetic(
    baseline_tok_s: float, cycle_ms: float, accept_length: float, bound: int | None, targets: Sequence[float]
) -> BreakEven:
    length = max(1.0, accept_length)
    possible = bound is not None and bound > 1 and length <= bound
    return break_even(
        baseline_tok_s=baseline_tok_s, cycle_ms=cycle_ms, accept_length=length,
        num_steps=bound - 1 if possible and bound is not None else None, targets=targets,
    )  # fmt: skip
