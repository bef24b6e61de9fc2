"""How often drafts are right: positions and trees by drafter, factors by prompt class."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from spectune.calibration.observed import Observed
from spectune.engines.simulated.acceptance import MOST_LIKELY, accept_length, branching_of, survival
from spectune.engines.simulated.profile_schema import AcceptanceTable, DrafterTrees
from spectune.engines.simulated.setup import Setup
from spectune.search.evidence.setting import Setting
from spectune.search.guided.acceptance import AcceptanceModel, Accepted
from spectune.search.guided.branching import USUAL, SeenTree, fitted

SMALLEST, LARGEST = 0.02, 5.0  # factors of a prompt class
NOT_DRAFTING = 0.5  # positions of a study in which nothing drafted
ROUNDS = 3  # of classes, positions and trees in turns: each is fitted beside the others


@dataclass(frozen=True)
class AcceptanceFit:
    """The table of a profile.

    Attributes:
        table: As the profile has it.
        drafters: Those that were measured; what drafts without a draft model is called `""`.
        guessed: Those of which no tree was measured: their breadth and confidence are guesses.
    """

    table: AcceptanceTable
    drafters: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()

    @property
    def trees(self) -> bool:
        """Whether any tree was measured."""
        return len(self.guessed) < len(self.drafters)


def fit_acceptance(points: Sequence[Observed]) -> AcceptanceFit:
    """Fit all drafters, their trees by the law of breadth and confidence, and prompt classes by one factor each.

    Positions come from the chains' own counters, all classes together; a class multiplies them. Since the mean of
    products is not the product of means, the positions are then scaled until the mixture of classes has the accept
    length that was measured. Trees are fitted class by class, to the chains that the classes have.
    """
    drafting = [one for one in points if one.setup.speculative]
    if not drafting:
        return AcceptanceFit(AcceptanceTable(default=(NOT_DRAFTING,)))
    depth = max(one.setup.depth for one in drafting)
    model = AcceptanceModel.fit((_accepted(one) for one in drafting), depth)
    shapes = {name: tuple(map(_bounded, shape)) for name, shape in model.conditionals.items()}
    shared = model.branchings[""]
    table = AcceptanceTable(
        default=tuple(map(_bounded, model.fallback)), drafters=shapes, breadth=shared.breadth,
        confidence=shared.confidence,
    )  # fmt: skip
    for _ in range(ROUNDS):
        table = table.model_copy(update={"by_class": _class_factors(drafting, table)})
        table = table.model_copy(update={"drafters": _scaled_drafters(drafting, table)})
        table = table.model_copy(update=_fitted_trees(drafting, table))
    return AcceptanceFit(_nameless(table), tuple(shapes), tuple(name for name in shapes if name not in table.trees))


def drafter_of(setup: Setup) -> str:
    """Return the drafter's name, `""` for what drafts without a draft model."""
    return setup.drafter or ""


def expected_length(table: AcceptanceTable, one: Observed) -> float:
    """Return the accept length of a level by the table, its prompt classes mixed as they came.

    Tokens and verifies add up over requests of the same length, so lengths mix as harmonic means.
    """
    if not one.setup.speculative:
        return 1.0
    classes = {name: count for name, count in one.requests_by_class.items() if count > 0} or {"": 1}
    verifies = sum(count / length_of(table, one.setup, name) for name, count in classes.items())
    return sum(classes.values()) / verifies


def length_of(table: AcceptanceTable, setup: Setup, prompt_class: str) -> float:
    """Return the accept length of one prompt class."""
    return _length(table, setup, table.by_class.get(prompt_class, 1.0))


def _length(table: AcceptanceTable, setup: Setup, factor: float) -> float:
    return accept_length(survival(setup, _chain(table, setup, factor), branching_of(table, setup.drafter)))


def _chain(table: AcceptanceTable, setup: Setup, factor: float) -> tuple[float, ...]:
    listed = table.drafters.get(drafter_of(setup), table.default)
    return tuple(min(MOST_LIKELY, listed[min(i, len(listed) - 1)] * factor) for i in range(setup.depth))


def _fitted_trees(drafting: Sequence[Observed], table: AcceptanceTable) -> dict[str, Any]:
    """Return the parts of the table that say what trees are like: over all drafters, and of each that launched any."""
    seen: dict[str, list[SeenTree]] = defaultdict(list)
    for one in drafting:
        if one.setup.eagle_topk > 1:
            seen[drafter_of(one.setup)] += _seen_trees(one, table)
    shared = fitted(itertools.chain.from_iterable(seen.values()), USUAL)
    own = {name: fitted(trees, shared) for name, trees in seen.items()}
    trees = {name: DrafterTrees(breadth=one.breadth, confidence=one.confidence) for name, one in own.items()}
    return {"breadth": shared.breadth, "confidence": shared.confidence, "trees": trees}


def _seen_trees(one: Observed, table: AcceptanceTable) -> Iterator[SeenTree]:
    """Yield the tree of a level as each prompt class saw it."""
    setup = one.setup
    for name, length in (one.by_class or {"": one.accept_length}).items():
        own = _chain(table, setup, table.by_class.get(name, 1.0))
        yield SeenTree(own, setup.depth, setup.eagle_topk, setup.num_draft_tokens, max(1.0, length))


def _nameless(table: AcceptanceTable) -> AcceptanceTable:
    """Return the table as the engine reads it: what drafts without a draft model has the values of no drafter's own."""
    if "" not in table.drafters:
        return table
    shared = DrafterTrees(breadth=table.breadth, confidence=table.confidence)
    drafters, trees = dict(table.drafters), {name: table.trees.get(name, shared) for name in table.drafters}
    default, own = drafters.pop(""), trees.pop("")
    return table.model_copy(
        update={"default": default, "drafters": drafters, "trees": trees, "breadth": own.breadth,
                "confidence": own.confidence}
    )  # fmt: skip


def _class_factors(drafting: Sequence[Observed], table: AcceptanceTable) -> dict[str, float]:
    measured: dict[str, list[tuple[Setup, float]]] = defaultdict(list)
    for one in drafting:
        for name, length in one.by_class.items():
            measured[name].append((one.setup, length))
    if len(measured) < 2:
        return {}
    return {name: _solved(items, table) for name, items in sorted(measured.items())}


def _solved(items: Sequence[tuple[Setup, float]], table: AcceptanceTable) -> float:
    """Return the factor under which the logarithms of a class' accept lengths are right on average."""
    wanted = fmean(math.log(max(1.0, length)) for _, length in items)
    return _bisected(lambda factor: fmean(math.log(_length(table, setup, factor)) for setup, _ in items), wanted)


def _scaled_drafters(drafting: Sequence[Observed], table: AcceptanceTable) -> dict[str, tuple[float, ...]]:
    """Return each drafter's positions, all times what gives the mixture its measured accept length."""
    scaled = {}
    for name, shape in table.drafters.items():
        own = [one for one in drafting if drafter_of(one.setup) == name]
        wanted = fmean(math.log(one.accept_length) for one in own)

        def mixed(factor: float, own: Sequence[Observed] = own, name: str = name) -> float:
            tried = table.model_copy(
                update={"drafters": {**table.drafters, name: _times(table.drafters[name], factor)}}
            )
            return fmean(math.log(expected_length(tried, one)) for one in own)

        scaled[name] = _times(shape, _bisected(mixed, wanted))
    return scaled


def _bisected(rising: Callable[[float], float], wanted: float) -> float:
    low, high = SMALLEST, LARGEST
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return math.sqrt(low * high)


def _times(shape: Sequence[float], factor: float) -> tuple[float, ...]:
    return tuple(_bounded(value * factor) for value in shape)


def _bounded(value: float) -> float:
    return min(1.0, max(0.0, value))


def _accepted(one: Observed) -> Accepted:
    setup = one.setup
    topk = setup.eagle_topk if setup.num_draft_tokens > 2 else 1  # a tree of one drafted token is a chain
    setting = Setting(
        drafter=drafter_of(setup), steps=setup.depth, topk=topk, tokens=setup.num_draft_tokens,
        captured=setup.captured, running=setup.max_running,
    )  # fmt: skip
    return Accepted(setting, one.per_position, one.accept_length, one.verifies)
