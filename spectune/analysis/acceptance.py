"""What a drafter's tokens are worth, from the counters every request brings back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spectune.bench.records import RequestRecord

NOTHING_ACCEPTED = 1.05
"""At or below this accept length a drafter is misconfigured, not weak (sglang#21272)."""


@dataclass(frozen=True, slots=True)
class PositionAcceptance:
    """Acceptance by draft position; index 0 is the first drafted token.

    Attributes:
        survival: q_i = P(at least i tokens accepted), non-increasing.
        conditional: a_i = P(i-th accepted | all before it accepted); 0.0 where no verify got that far.
        verifies: Verify passes these are counted from.
    """

    survival: tuple[float, ...]
    conditional: tuple[float, ...]
    verifies: int


def accept_length(correct_drafts: float, verifies: float) -> float:
    """Mean tokens per verify, bonus token included: τ = 1 + Σ correct drafts / Σ verifies (DESIGN.md, section 1).

    Without a single verify nothing was drafted, and every pass emits one token: 1.0.
    """
    assert correct_drafts >= 0.0
    assert verifies >= 0.0
    return 1.0 + correct_drafts / verifies if verifies else 1.0


def accept_length_of(records: Iterable[RequestRecord]) -> float:
    """Accept length over all requests that were answered to their end."""
    whole = [record for record in records if record.completed]
    return accept_length(
        sum(record.spec_num_correct_drafts for record in whole), sum(record.spec_verify_ct for record in whole)
    )


def accept_length_by_class(records: Iterable[RequestRecord]) -> dict[str, float]:
    """Accept length of every prompt class, by name."""
    classes: dict[str, list[RequestRecord]] = {}
    for record in records:
        classes.setdefault(record.prompt_class, []).append(record)
    return {name: accept_length_of(classes[name]) for name in sorted(classes)}


def context_bucket(record: RequestRecord) -> str:
    """Tokens of context, as the range between two powers of two: "256-511".

    While its answer grows from nothing to its end, a request's context is prompt + answer / 2 on average.
    """
    tokens = max(1, record.prompt_tokens + record.output_tokens // 2)
    low = 1 << (tokens.bit_length() - 1)
    return f"{low}-{2 * low - 1}"


def sum_histograms(histograms: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Histograms of several requests as one; requests may have histograms of different lengths."""
    total: list[int] = []
    for histogram in histograms:
        total.extend([0] * (len(histogram) - len(total)))
        for accepted, count in enumerate(histogram):
            total[accepted] += count
    return tuple(total)


def position_acceptance(histogram: Sequence[int]) -> PositionAcceptance:
    """Survival and conditional acceptance per position.

    Args:
        histogram: Index i counts the verifies that accepted exactly i drafted tokens.
    """
    verifies = sum(histogram)
    if not verifies:
        return PositionAcceptance((), (), 0)
    reached = verifies
    survival: list[float] = []
    conditional: list[float] = []
    for stopped in histogram[:-1]:
        survived = reached - stopped
        survival.append(survived / verifies)
        conditional.append(survived / reached if reached else 0.0)
        reached = survived
    return PositionAcceptance(tuple(survival), tuple(conditional), verifies)


def constant_acceptance_length(acceptance: float, num_steps: int) -> float:
    """Accept length of a chain when every position accepts alike: (1 − a^(S+1))/(1 − a) (Leviathan et al. 2023)."""
    assert 0.0 <= acceptance <= 1.0
    return sum(acceptance**position for position in range(num_steps + 1))
