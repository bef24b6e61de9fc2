"""From the baseline's speed to a candidate's: what drafting gives, and what takes it away."""

from __future__ import annotations

from collections.abc import Iterator

from spectune.analysis.why.cycle import CycleParts
from spectune.analysis.why.result import BreakEvenRow, Waterfall, WaterfallStep


def waterfall(row: BreakEvenRow) -> Waterfall:
    """Work out the steps of one candidate at one level.

    It begins with the plain step T₀ and goes in milliseconds per token: a cycle of one plain step whose drafts are all
    right, T₀/(S+1); then what draft, verify and host add to that cycle; last the drafts that are rejected, from
    T/(S+1) to T/τ. Where the bound is not known the accept length stands for it, and nothing is rejected.

    Args:
        row: All requests of the candidate at the level.
    """
    length, cycle = row.accept_length.est, row.cycle_ms.est
    plain_ms = 1000.0 / row.baseline_tok_s
    most = max(length, float(row.bound or 0))
    at = plain_ms
    steps = [_step("baseline", "no speculation", 0.0, plain_ms, whole=True)]
    all_right = "every draft right, and a cycle as short as a plain step"
    changes = [("drafts", all_right, plain_ms / most - plain_ms)]
    changes += [(name, words, ms / most) for name, words, ms in _added(row.parts, cycle, plain_ms)]
    rejected = f"drafts that are rejected: {length:.2f} tokens of {most:g} come out"
    changes.append(("rejected", rejected, cycle / length - cycle / most))
    for name, words, change in changes:
        steps.append(_step(name, words, at, at + change))
        at += change
    steps.append(_step("candidate", row.label, 0.0, cycle / length, whole=True))
    return Waterfall(row.candidate_id, row.label, row.level, tuple(steps))


def _added(parts: CycleParts | None, cycle_ms: float, plain_ms: float) -> Iterator[tuple[str, str, float]]:
    """Yield what a cycle takes beyond a plain step: name, words and milliseconds."""
    if parts is None or parts.draft_ms is None or parts.verify_ms is None:
        yield "cycle", "draft, verify and host, not told apart", cycle_ms - plain_ms
        return
    host = "" if parts.host_ms is not None else ", host included"
    yield "draft", "the draft steps", parts.draft_ms.est
    yield "verify", f"the verify, beyond a plain step{host}", parts.verify_ms.est - plain_ms
    if parts.host_ms is not None:
        yield "host", "host and what every cycle takes", parts.host_ms.est
    yield "unexplained", "not explained by the fit", parts.unexplained_ms


def _step(name: str, words: str, before_ms: float, after_ms: float, *, whole: bool = False) -> WaterfallStep:
    speed = 1000.0 / after_ms
    return WaterfallStep(
        name, words,
        ms=after_ms if whole else after_ms - before_ms,
        tok_s=speed if whole else speed - 1000.0 / before_ms,
        reached_ms=after_ms, reached_tok_s=speed,
    )  # fmt: skip
