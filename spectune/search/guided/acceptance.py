"""Accept length of every setting, from the per-position counters of all launches so far, by class of prompts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from spectune.engines.draft_trees import Branching, chain_lengths, tree_lengths
from spectune.search.evidence.setting import Setting
from spectune.search.guided.branching import USUAL, SeenTree, fitted, table_size
from spectune.search.guided.drafts import Alike, Drafts
from spectune.search.guided.mixture import ClassSurvival, blended, cycles

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FIRST_GUESS = 0.6  # P(first drafted token right) of a drafter nobody has seen
PRIOR_VERIFIES = 15.0  # what a guess weighs beside counted verifies
MOST = 0.995
UNSEEN_DRAFTER = 0.25  # standard deviation of log τ before a drafter's first launch
BEYOND = 0.3  # part of what positions never tried add to τ that may be wrong
TREES, TREES_OF_DRAFTER, TREES_OF_TOPK = 0.4, 0.25, 0.2  # part of a tree's gain that may be wrong
SEEN_VERIFIES = 30.0  # that reached a position, for it to count as tried
RANKING = 0.6  # part of what a drafter's ranking costs its trees that may be wrong: likeliest for 128 measured ones


@dataclass(frozen=True)
class Accepted:
    """What one level of one launch says of acceptance.

    Attributes:
        setting: Of the launch.
        survival: P(at least i drafts right), i from 1.
        length: Accept length.
        verifies: Cycles it rests on.
        classes: The same by prompt class; empty where they are not told apart.
    """

    setting: Setting
    survival: tuple[float, ...]
    length: float
    verifies: float
    classes: tuple[ClassSurvival, ...] = ()


@dataclass(frozen=True)
class AcceptanceModel:
    """Chains by the drafter's own positions, trees by one law per drafter.

    Attributes:
        conditionals: Drafter → a_i = P(i-th drafted token right | all before it right), to the depth wanted, over all
            cycles.
        branchings: Drafter → β and κ.
        fallback: a_i of a drafter without any launch.
        tried: Drafter → deepest position that was tried often.
        by_class: Drafter → share and a_i of each prompt class, where they are told apart.
    """

    conditionals: Mapping[str, tuple[float, ...]]
    branchings: Mapping[str, Branching]
    fallback: tuple[float, ...]
    tried: Mapping[str, int]
    by_class: Mapping[str, tuple[tuple[float, tuple[float, ...]], ...]] = field(default_factory=dict)

    @classmethod
    def fit(cls, observed: Iterable[Accepted], depth: int) -> AcceptanceModel:
        """Fit all drafters.

        Args:
            observed: Speculating launches, level by level.
            depth: Deepest position that will be asked for.
        """
        by_drafter: dict[str, list[Accepted]] = {}
        for item in observed:
            if item.setting.drafter is not None:
                by_drafter.setdefault(item.setting.drafter, []).append(item)
        guess = (FIRST_GUESS,)
        conditionals = {name: _conditionals(items, guess, depth) for name, items in by_drafter.items()}
        fallback = _mean_shape(list(conditionals.values()), depth)
        trees = {name: _trees(conditionals[name], items) for name, items in by_drafter.items()}
        shared = fitted(itertools.chain.from_iterable(trees.values()), USUAL)
        branchings = {name: fitted(seen, shared) for name, seen in trees.items()}
        tried = {name: max(_tried(item) for item in items) for name, items in by_drafter.items()}
        by_class = {name: found for name, items in by_drafter.items() if (found := _by_class(items, guess, depth))}
        return cls(conditionals, {**branchings, "": shared}, fallback, tried, by_class)

    @cached_property
    def _chains(self) -> Mapping[str, Floats]:
        """Drafter → τ of chains of 0, 1, 2 … drafted tokens."""
        return {name: self._mixed(name, chain_lengths) for name in (*self.conditionals, "")}

    def _mixed(self, name: str, lengths: Callable[[tuple[float, ...]], Floats]) -> Floats:
        """Return the accept lengths of a drafter's mix of prompts, from what the chain of each class gives."""
        parts = self.by_class.get(name, ((1.0, self.conditionals.get(name, self.fallback)),))
        return blended([lengths(chain) for _, chain in parts], [share for share, _ in parts])

    def lengths(self, drafts: Drafts) -> Floats:
        """Return the accept length to expect of each way to draft, shape (drafts,)."""
        found = np.ones(drafts.count)
        for alike in drafts.groups:
            name = self._known(alike.drafter)
            if alike.topk == 1:
                found[alike.at] = self._chains[name][self._deepest(name, alike)]
            else:
                found[alike.at] = self._trees(name, alike, self.branchings[name])
        return found

    def features(self, drafts: Drafts, lengths: Floats, among: Drafts) -> Floats:
        """Return what may be wrong with each log accept length, in independent parts, shape (drafts, parts).

        The parts: each drafter as long as it is unseen, and its positions beyond those tried; what trees add, whatever
        they are, for each drafter, and for each K; and what each drafter's ranking takes from its trees.

        Args:
            drafts: Ways to draft.
            lengths: Their accept lengths.
            among: Ways whose drafters and K are told apart; others have the common part alone.
        """
        drafters, widths = among.drafters, among.widths
        common, own, added, lost, wide = np.split(
            np.zeros((drafts.count, 1 + 3 * len(drafters) + len(widths))),
            np.cumsum([1, *[len(drafters)] * 3]),
            axis=1,
        )
        for alike in drafts.groups:
            name = self._known(alike.drafter)
            chain, deepest, length = self._chains[name], self._deepest(name, alike), lengths[alike.at]
            gain = loss = np.zeros(len(length))
            if alike.topk > 1:
                best = self._trees(name, alike, replace(self.branchings[name], confidence=1.0))
                gain = (best - chain[np.minimum(deepest, alike.tokens - 1)]) / length
                loss = (best - length) / length
            common[alike.at, 0] = TREES * gain
            if alike.drafter in drafters:
                at = drafters.index(alike.drafter)
                beyond = BEYOND * (chain[deepest] - chain[np.minimum(deepest, self.tried.get(name, 0))]) / length
                own[alike.at, at] = beyond if name else UNSEEN_DRAFTER
                added[alike.at, at] = TREES_OF_DRAFTER * gain
                lost[alike.at, at] = RANKING * loss
            if alike.topk in widths:
                wide[alike.at, widths.index(alike.topk)] = TREES_OF_TOPK * gain
        return np.hstack([common, own, added, lost, wide])

    def _trees(self, name: str, alike: Alike, branching: Branching) -> Floats:
        """Return the accept lengths of trees that share drafter and K."""
        size = table_size(int(alike.tokens.max()))
        table = self._mixed(name, partial(tree_lengths, topk=alike.topk, branching=branching, most_tokens=size))
        return table[self._deepest(name, alike), alike.tokens]

    def _known(self, drafter: str) -> str:
        return drafter if drafter in self.conditionals else ""

    def _deepest(self, name: str, alike: Alike) -> Integers:
        return np.minimum(alike.depths, len(self._chains[name]) - 1)


def even_survival(length: float, depth: int) -> tuple[float, ...]:
    """Return P(at least i drafts right) of a chain whose positions are alike, for engines that count no positions.

    E[τ] = (1 − a^(S+1)) / (1 − a), solved for a by bisection.
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if sum(middle**i for i in range(depth + 1)) < length else (low, middle)
    return tuple(low**i for i in range(1, depth + 1))


def _tried(item: Accepted) -> int:
    reached = [item.verifies, *(item.verifies * share for share in item.survival)]
    return min(item.setting.depth, sum(count >= SEEN_VERIFIES for count in reached[:-1]))


def _conditionals(items: Sequence[Accepted], guess: Sequence[float], depth: int) -> tuple[float, ...]:
    """Return a_i: counts where there are any, each guess being the average of the positions before it.

    Trees stand in only for a drafter that never drafted a chain: they are right more often than its chains would be.
    """
    chains = [item for item in items if item.setting.topk == 1] or list(items)
    found: list[float] = []
    for position in range(depth):
        tried = right = 0.0
        for item in chains:
            if position < min(len(item.survival), item.setting.depth):
                before = item.survival[position - 1] if position else 1.0
                tried += item.verifies * before
                right += item.verifies * item.survival[position]
        expected = guess[position] if position < len(guess) else float(np.mean(found[-2:]))
        value = (right + PRIOR_VERIFIES * expected) / (tried + PRIOR_VERIFIES)
        found.append(min(MOST, max(1.0 - MOST, value)))
    return tuple(found)


def _by_class(
    items: Sequence[Accepted], guess: Sequence[float], depth: int
) -> tuple[tuple[float, tuple[float, ...]], ...]:
    """Return share and a_i of each class of prompts; nothing if any level does not tell them apart."""
    if not all(item.classes for item in items):
        return ()
    own: dict[str, list[Accepted]] = {}
    shares: dict[str, float] = {}
    for item in items:
        for one, verifies in zip(item.classes, cycles(item.classes, item.verifies), strict=True):
            own.setdefault(one.name, []).append(replace(item, survival=one.survival, verifies=verifies))
            shares[one.name] = shares.get(one.name, 0.0) + one.share / len(items)
    return tuple((shares[name], _conditionals(found, guess, depth)) for name, found in own.items())


def _trees(conditionals: tuple[float, ...], items: Iterable[Accepted]) -> list[SeenTree]:
    trees = [item for item in items if item.setting.topk > 1]
    return [SeenTree(conditionals, t.setting.depth, t.setting.topk, t.setting.tokens, t.length) for t in trees]


def _mean_shape(shapes: Sequence[tuple[float, ...]], depth: int) -> tuple[float, ...]:
    if not shapes:
        return (FIRST_GUESS,) * depth
    return tuple(float(value) for value in np.mean(np.array(shapes), axis=0))
