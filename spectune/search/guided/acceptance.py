"""Accept length of every setting, from the per-position counters of all launches so far, by class of prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from spectune.search.guided.drafts import Alike, Drafts
from spectune.search.guided.mixture import ClassSurvival, blended, cycles
from spectune.search.guided.setting import Setting
from spectune.search.guided.trees import chain_lengths, tree_lengths

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FIRST_GUESS = 0.6  # P(first drafted token right) of a drafter nobody has seen
PRIOR_VERIFIES = 15.0  # what a guess weighs beside counted verifies
MOST = 0.995
BREADTH_GUESS, BREADTH_SPREAD = 0.3, 0.6  # of a logarithm
BREADTHS = np.exp(np.linspace(np.log(0.03), np.log(1.2), 15))
UNSEEN_DRAFTER = 0.25  # standard deviation of log τ before a drafter's first launch
BEYOND = 0.3  # part of what positions never tried add to τ that may be wrong
TREES, TREES_OF_DRAFTER, TREES_OF_TOPK = 0.4, 0.25, 0.2  # part of a tree's gain that may be wrong
SEEN_VERIFIES = 30.0  # that reached a position, for it to count as tried
TREE_ERROR = 0.03  # relative: how far the law of breadth is trusted


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
    """Chains by the drafter's own positions, trees by one law of breadth per drafter.

    Attributes:
        conditionals: Drafter → a_i = P(i-th drafted token right | all before it right), to the depth wanted, over all
            cycles.
        breadths: Drafter → β.
        fallback: a_i of a drafter without any launch.
        tried: Drafter → deepest position that was tried often.
        by_class: Drafter → share and a_i of each prompt class, where they are told apart.
    """

    conditionals: Mapping[str, tuple[float, ...]]
    breadths: Mapping[str, float]
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
        shared = _breadth(
            [(conditionals[name], item) for name, items in by_drafter.items() for item in items], BREADTH_GUESS
        )
        breadths = {
            name: _breadth([(conditionals[name], item) for item in items], shared) for name, items in by_drafter.items()
        }
        tried = {name: max(_tried(item) for item in items) for name, items in by_drafter.items()}
        by_class = {name: found for name, items in by_drafter.items() if (found := _by_class(items, guess, depth))}
        return cls(conditionals, {**breadths, "": shared}, fallback, tried, by_class)

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
                size, breadth = _table_size(int(alike.tokens.max())), self.breadths[name]
                table = self._mixed(name, partial(tree_lengths, topk=alike.topk, breadth=breadth, most_tokens=size))
                found[alike.at] = table[self._deepest(name, alike), alike.tokens]
        return found

    def features(self, drafts: Drafts, lengths: Floats, among: Drafts) -> Floats:
        """Return what may be wrong with each log accept length, in independent parts, shape (drafts, parts).

        The parts: each drafter as long as it is unseen, and its positions beyond those tried; what trees add, whatever
        they are, for each drafter, and for each K.

        Args:
            drafts: Ways to draft.
            lengths: Their accept lengths.
            among: Ways whose drafters and K are told apart; others have the common part alone.
        """
        drafters, widths = among.drafters, among.widths
        found = np.zeros((drafts.count, 1 + 2 * len(drafters) + len(widths)))
        for alike in drafts.groups:
            name = self._known(alike.drafter)
            chain, deepest, length = self._chains[name], self._deepest(name, alike), lengths[alike.at]
            gain = (length - chain[np.minimum(deepest, alike.tokens - 1)]) / length if alike.topk > 1 else 0.0
            found[alike.at, 0] = TREES * gain
            if alike.drafter in drafters:
                own = 1 + drafters.index(alike.drafter)
                beyond = BEYOND * (chain[deepest] - chain[np.minimum(deepest, self.tried.get(name, 0))]) / length
                found[alike.at, own] = beyond if name else UNSEEN_DRAFTER
                found[alike.at, own + len(drafters)] = TREES_OF_DRAFTER * gain
            if alike.topk in widths:
                found[alike.at, 1 + 2 * len(drafters) + widths.index(alike.topk)] = TREES_OF_TOPK * gain
        return found

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


def _table_size(tokens: int) -> int:
    return -(-tokens // 64) * 64  # one table serves all sizes up to the next 64


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


def _mean_shape(shapes: Sequence[tuple[float, ...]], depth: int) -> tuple[float, ...]:
    if not shapes:
        return (FIRST_GUESS,) * depth
    return tuple(float(value) for value in np.mean(np.array(shapes), axis=0))


def _breadth(observed: Sequence[tuple[tuple[float, ...], Accepted]], guess: float) -> float:
    """Return the β under which the trees seen are most likely, a guess beside them."""
    alike: dict[tuple[tuple[float, ...], int], list[Accepted]] = {}
    for chain, item in observed:
        if item.setting.topk > 1:
            alike.setdefault((chain, item.setting.topk), []).append(item)
    if not alike:
        return guess
    losses = ((np.log(BREADTHS) - np.log(guess)) / BREADTH_SPREAD) ** 2
    for (chain, topk), items in alike.items():
        depths = np.minimum([item.setting.depth for item in items], len(chain))
        tokens, lengths = np.array([item.setting.tokens for item in items]), np.array([item.length for item in items])
        for index, breadth in enumerate(BREADTHS):
            expected = tree_lengths(chain, topk, float(breadth), _table_size(int(tokens.max())))[depths, tokens]
            losses[index] += np.square(np.log(expected / lengths) / TREE_ERROR).sum()
    return float(np.exp(_vertex(np.log(BREADTHS), losses)))


def _vertex(at: Floats, losses: Floats) -> float:
    """Return where a parabola through the least of equally spaced losses and its neighbours is least."""
    best = int(np.argmin(losses))
    if best in {0, len(at) - 1}:
        return float(at[best])
    left, middle, right = losses[best - 1 : best + 2]
    return float(at[best] + 0.5 * (left - right) / (left - 2 * middle + right) * (at[1] - at[0]))
