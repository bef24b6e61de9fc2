"""Ways to draft that a space offers, and their accept lengths with drafters of any quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spectune.analysis.diagnosis.running import STEPWISE
from spectune.engines.draft_trees import Branching, chain_lengths, tree_lengths
from spectune.search.evidence.setting import Setting
from spectune.search.guided.acceptance import AcceptanceModel
from spectune.space import EAGLE_TOPK, NUM_DRAFT_TOKENS, NUM_STEPS, Candidate, SearchSpace

Floats = npt.NDArray[np.float64]

BEST, WORST = 40.0, -40.0
"""Log odds that turn any drafter into a perfect one, or into one that is never right."""


@dataclass(frozen=True)
class Shapes:
    """The ways to draft of one drafter in one surrounding.

    Attributes:
        candidates: One for each way, the candidate itself first.
        settings: Theirs.
        conditionals: a_i of the drafter as it is.
        branching: β and κ of its trees.
    """

    candidates: tuple[Candidate, ...]
    settings: tuple[Setting, ...]
    conditionals: tuple[float, ...]
    branching: Branching

    @classmethod
    def of(cls, candidate: Candidate, own: Setting, space: SearchSpace, acceptance: AcceptanceModel) -> Shapes:
        """List what the space offers beside the candidate's own S, K and N, all else as it is there.

        Args:
            candidate: Whose surrounding it is.
            own: Its setting.
            space: The space.
            acceptance: Of the study.
        """
        name = own.drafter if own.drafter in acceptance.conditionals else ""
        shape = acceptance.conditionals.get(name or "", acceptance.fallback)
        others = _others(candidate, own, space) if candidate.algorithm in STEPWISE else []
        candidates, settings = zip((candidate, own), *others, strict=True)
        return cls(candidates, settings, shape, acceptance.branchings[name or ""])

    def lengths(self, log_odds: Floats) -> Floats:
        """Return the accept length of each way with a drafter whose odds of being right are changed at every position.

        Args:
            log_odds: Added to ln a_i/(1 − a_i) of every position, one for each way; 0 is the drafter as it is.
        """
        return np.array([self._length(way, float(odds)) for way, odds in enumerate(log_odds)])

    def odds_for(self, accept_length: float, way: int = 0) -> float:
        """Return the change of odds at which a way, by default the candidate's own, has this accept length."""
        low, high = WORST, BEST
        for _ in range(50):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self._length(way, middle) < accept_length else (low, middle)
        return (low + high) / 2.0

    @property
    def bound(self) -> int:
        """Highest accept length of the candidate's own way."""
        return self.settings[0].depth + 1

    def _length(self, way: int, log_odds: float) -> float:
        setting, shape = self.settings[way], np.array(self.conditionals)
        changed = tuple((1.0 / (1.0 + (1.0 / shape - 1.0) * np.exp(-log_odds))).tolist())
        if setting.topk == 1:
            chain = chain_lengths(changed)
            return float(chain[min(setting.depth, len(chain) - 1)])
        most = max(one.tokens for one in self.settings)
        table = tree_lengths(changed, setting.topk, self.branching, most)
        return float(table[min(setting.depth, len(shape)), setting.tokens])


def _others(candidate: Candidate, own: Setting, space: SearchSpace) -> list[tuple[Candidate, Setting]]:
    """Return chains of S + 1 tokens, and trees of S + 1 to 1 + K + (S − 1)·K² tokens, that the space allows."""
    found = []
    for steps in _values(space, NUM_STEPS, own.steps):
        for topk in _values(space, EAGLE_TOPK, own.topk):
            most = 1 + topk + (steps - 1) * topk**2
            sizes = [steps + 1] if topk == 1 else _values(space, NUM_DRAFT_TOKENS, own.tokens)
            for tokens in sizes:
                way = {NUM_STEPS: steps, EAGLE_TOPK: topk, NUM_DRAFT_TOKENS: tokens}
                setting = replace(own, steps=steps, topk=topk, tokens=tokens)
                other = Candidate.of({**candidate.values, **way})
                if steps + 1 <= tokens <= most and setting != own and space.forbidden(other) is None:
                    found.append((other, setting))
    return found


def _values(space: SearchSpace, name: str, otherwise: int) -> Sequence[int]:
    parameter = space.parameters.get(name)
    found = [] if parameter is None else [value for value in parameter.values if isinstance(value, int)]
    return sorted(found) or [otherwise]
