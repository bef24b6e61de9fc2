"""Whether a launch answers as the baseline does, and whether its drafts are accepted at all."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spectune.bench.canary import Answer

CORRUPT_HAZARD = 0.25
"""Per token. Near ties of two logits part two sound runs every few dozen tokens, corruption within the first few."""
CORRUPT_FACTOR = 5.0
"""How many times more often than two runs of the baseline a corrupted launch parts from it."""
REPEATING = 0.3
"""Share of distinct pairs of tokens, relative to the baseline's, below which an answer only repeats itself."""
NOTHING_ACCEPTED = 1.05
ENOUGH_VERIFIES = 50


@dataclass(frozen=True)
class Agreement:
    """How well the answers of a launch agree with the baseline's.

    Attributes:
        same: Answers that are identical.
        answers: All that were compared.
        hazard: Probability per token to part from the baseline; 0.0 when nothing did.
        baseline_hazard: The same of the baseline against itself, another batch size; None where it ran once.
        corrupt: Whether this is more than numeric drift.
    """

    same: int
    answers: int
    hazard: float
    baseline_hazard: float | None
    corrupt: bool

    @property
    def words(self) -> str:
        """Return it as a sentence without a full stop."""
        if self.same == self.answers:
            return f"all {self.answers} greedy answers are the baseline's"
        apart = f"{self.answers - self.same} of {self.answers} greedy answers part from the baseline's"
        after = f"{apart}, after {1 / self.hazard:.0f} tokens on average"
        if self.baseline_hazard is None:
            return after
        own = f"after {1 / self.baseline_hazard:.0f}" if self.baseline_hazard else "not at all"
        return f"{after}; the baseline parts from itself {own}"


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
    hazard = _hazard(matched)
    own = None if baseline_again is None else _hazard(list(_pairs(baseline_again, baseline)))
    corrupt = hazard >= CORRUPT_HAZARD and hazard >= CORRUPT_FACTOR * (own or 0.0)
    same = sum(mine == theirs for mine, theirs in matched)
    return Agreement(same, len(matched), hazard, own, corrupt)


def repeats_itself(answers: Sequence[Answer], baseline: Sequence[Answer]) -> bool:
    """Whether the answers go round in circles where the baseline's do not."""
    shares = [(_distinct(mine), _distinct(theirs)) for mine, theirs in _pairs(answers, baseline)]
    looping = [mine < REPEATING * theirs for mine, theirs in shares]
    return bool(looping) and sum(looping) > len(looping) / 2


def accept_length(answers: Iterable[Answer]) -> float | None:
    """Return the mean tokens per verify; None without 50 verifies to take it from."""
    told = list(answers)
    verifies = sum(answer.verifies for answer in told)
    return None if verifies < ENOUGH_VERIFIES else 1.0 + sum(answer.correct for answer in told) / verifies


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


def _common(mine: Sequence[int], theirs: Sequence[int]) -> int:
    shorter = min(len(mine), len(theirs))
    return next((index for index in range(shorter) if mine[index] != theirs[index]), shorter)


def _distinct(ids: Sequence[int]) -> float:
    pairs = list(itertools.pairwise(ids))
    return len(set(pairs)) / len(pairs) if pairs else 0.0
