"""Whether a launch answers as the baseline does, and whether its drafts are accepted at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spectune.analysis import acceptance
from spectune.bench.canary import Answer

CORRUPT_HAZARD = 0.25
"""Per token. Near ties of two logits part two sound runs every few dozen tokens, corruption within the first few."""
CORRUPT_FACTOR = 5.0
"""How many times more often than two runs of the baseline a corrupted launch parts from it."""
AT_ONCE, MOST_AT_ONCE = 2, 2
"""More answers than this that part within so many tokens are no near ties: 1 in 250 launches at one in 20 tokens."""
REPEATING = 0.3
"""Share of distinct pairs of tokens, relative to the baseline's, below which an answer only repeats itself."""
ENOUGH_VERIFIES = 50
TOLD_APART = 8
"""Tokens: sampled ones are not all the likeliest for so long at a temperature at which no two answers are alike."""
MOST_GREEDY = 0.5
"""Share of sampled answers that go on as greedy ones do, above which a launch samples nothing but their first token."""


@dataclass(frozen=True)
class Agreement:
    """How well the answers of a launch agree with the baseline's.

    Attributes:
        same: Answers that are identical.
        answers: All that were compared.
        parted: Tokens in common of every answer that parts from the baseline's.
        hazard: Probability per token to part from the baseline; 0.0 when nothing did.
        baseline_parted: The same of the baseline against itself, another batch size; None where it ran once.
        corrupt: Whether this is more than numeric drift.
    """

    same: int
    answers: int
    parted: tuple[int, ...]
    hazard: float
    baseline_parted: tuple[int, ...] | None
    corrupt: bool

    @property
    def words(self) -> str:
        """Return it as a sentence without a full stop."""
        if self.same == self.answers:
            return f"all {self.answers} greedy answers are the baseline's"
        told = f"{len(self.parted)} of {self.answers} greedy answers part from the baseline's, {_after(self.parted)}"
        if self.baseline_parted is None:
            return told
        own = f"in {len(self.baseline_parted)}, {_after(self.baseline_parted)}" if self.baseline_parted else "in none"
        return f"{told}; the baseline parts from itself {own}"


def agreement(
    answers: Sequence[Answer], baseline: Sequence[Answer], baseline_again: Sequence[Answer] | None
) -> Agreement:
    """Compare the greedy answers of a launch with a baseline's.

    Args:
        answers: Of the launch.
        baseline: Of the baseline to the same prompts.
        baseline_again: Of the same baseline once more, in another batch: what numeric drift alone does.
    """
    matched = list(_pairs(answers, baseline))
    again = [] if baseline_again is None else list(_pairs(baseline_again, baseline))
    hazard, own = _hazard(matched), _hazard(again)
    parted, own_parted = _parted(matched), _parted(again)
    at_once, own_at_once = (sum(common < AT_ONCE for common in found) for found in (parted, own_parted))
    drifting = hazard < CORRUPT_FACTOR * own  # as two runs of the baseline do
    corrupt = not drifting and (hazard >= CORRUPT_HAZARD or at_once > MOST_AT_ONCE + own_at_once)
    same = sum(mine == theirs for mine, theirs in matched)
    return Agreement(same, len(matched), parted, hazard, None if baseline_again is None else own_parted, corrupt)


def repeats_itself(answers: Sequence[Answer], baseline: Sequence[Answer]) -> bool:
    """Whether the answers go round in circles where the baseline's do not."""
    shares = [(_distinct(mine), _distinct(theirs)) for mine, theirs in _pairs(answers, baseline)]
    looping = [mine < REPEATING * theirs for mine, theirs in shares]
    return bool(looping) and sum(looping) > len(looping) / 2


def greedy_share(sampled: Sequence[Answer], continued: Sequence[Answer]) -> float | None:
    """Return the share of sampled answers that go on as greedy decoding goes on with their first token.

    The first token of an answer comes from the prefill, which samples whatever the verify does.

    Args:
        sampled: Answers at a temperature above 0.
        continued: Greedy answers to the same prompts with the first sampled token behind them.

    Returns:
        None where no answer is long enough to tell.
    """
    greedy = {answer.prompt_id: answer.output_ids for answer in continued if answer.error is None}
    found = [
        answer.output_ids[1 : 1 + TOLD_APART] == greedy[answer.prompt_id][:TOLD_APART]
        for answer in sampled
        if answer.error is None
        and len(answer.output_ids) > TOLD_APART
        and len(greedy.get(answer.prompt_id, ())) >= TOLD_APART
    ]
    return sum(found) / len(found) if found else None


def ignores_temperature(share: float | None, baseline: float | None) -> bool:
    """Whether a launch decodes greedily whatever it is asked for, although the baseline samples.

    Args:
        share: `greedy_share` of the launch.
        baseline: That of the baseline.
    """
    return share is not None and baseline is not None and baseline <= MOST_GREEDY < share


def accept_length(answers: Iterable[Answer]) -> float | None:
    """Return the mean tokens per verify; None without 50 verifies to take it from."""
    told = list(answers)
    verifies = sum(answer.verifies for answer in told)
    if verifies < ENOUGH_VERIFIES:
        return None
    return acceptance.accept_length(sum(answer.correct for answer in told), verifies)


def _pairs(answers: Sequence[Answer], baseline: Sequence[Answer]) -> Iterable[tuple[tuple[int, ...], tuple[int, ...]]]:
    known = {answer.prompt_id: answer.output_ids for answer in baseline if answer.error is None}
    for answer in answers:
        if answer.error is None and answer.prompt_id in known:
            yield answer.output_ids, known[answer.prompt_id]


def _hazard(pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> float:
    """Partings per token that could have parted: those in common, and the first that was not."""
    parted = sum(mine != theirs for mine, theirs in pairs)
    tokens = sum(_common(mine, theirs) + (mine != theirs) for mine, theirs in pairs)
    return parted / tokens if tokens else 0.0


def _parted(pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> tuple[int, ...]:
    return tuple(_common(mine, theirs) for mine, theirs in pairs if mine != theirs)


def _after(parted: Sequence[int]) -> str:
    return f"after {sum(parted) / len(parted):.0f} tokens on average"


def _common(mine: Sequence[int], theirs: Sequence[int]) -> int:
    shorter = min(len(mine), len(theirs))
    return next((index for index in range(shorter) if mine[index] != theirs[index]), shorter)


def _distinct(ids: Sequence[int]) -> float:
    pairs = list(itertools.pairwise(ids))
    return len(set(pairs)) / len(pairs) if pairs else 0.0
