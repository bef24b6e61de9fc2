"""How many drafted tokens are right: chains and trees of the profile page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import Any

from spectune.engines.draft_trees import Branching, tree_survival
from spectune.engines.simulated.profile_schema import AcceptanceTable, DrafterTrees
from spectune.engines.simulated.setup import Setup

MOST_LIKELY = 0.98
MIXED_CLASSES = ("code", "chat", "math")
"""The classes of `builtin:mixed`, a third each."""

KNOWN_CLASSES = (*MIXED_CLASSES, "random")


def position_probabilities(
    table: AcceptanceTable, drafter: str | None, prompt_class: str | None, context_tokens: float, depth: int
) -> tuple[float, ...]:
    """Return P(i-th drafted token right | all before it right) for i = 1 … `depth`.

    Args:
        table: The profile's.
        drafter: The drafter's path or name; one the table does not know has the default.
        prompt_class: Of the prompt; None and unknown ones have the factor 1.
        context_tokens: Tokens of the request so far.
        depth: Positions wanted.
    """
    listed = table.drafters.get(drafter, table.default) if drafter is not None else table.default
    factor = 1.0 if prompt_class is None else table.by_class.get(prompt_class, 1.0)
    if table.context_halving_ktokens > 0:
        factor *= 0.5 ** (context_tokens / 1000 / table.context_halving_ktokens)
    return tuple(min(MOST_LIKELY, listed[min(i, len(listed) - 1)] * factor) for i in range(depth))


def unknown_names(table: AcceptanceTable, drafter: str | None, prompt_class: str | None) -> list[str]:
    """Return a warning for each name the profile does not know."""
    warnings = [] if drafter is None else unknown_drafters(table, [drafter])
    if prompt_class is not None and prompt_class not in {*table.by_class, *KNOWN_CLASSES}:
        warnings.append(f"the profile does not know the prompt class '{prompt_class}' and takes the factor 1.0")
    return warnings


def unknown_drafters(table: AcceptanceTable, drafters: Sequence[Any]) -> list[str]:
    """Return a sentence on the drafters that the profile does not name, if there are any."""
    unknown = [repr(str(drafter)) for drafter in drafters if drafter not in table.drafters]
    if not unknown:
        return []
    names = ", ".join(unknown)
    if not table.drafters:
        return [f"the profile describes one drafter and names none: {names} accepts what that one does"]
    known = ", ".join(sorted(table.drafters))
    return [f"the profile does not know the drafter {names}: its default acceptance is used (known: {known})"]


def branching_of(table: AcceptanceTable, drafter: str | None) -> Branching:
    """Return β and κ of a drafter: its own, or those of all where it has none.

    Args:
        table: The profile's.
        drafter: The drafter's path or name.
    """
    own = table.trees.get(drafter or "", DrafterTrees())
    return Branching(
        breadth=table.breadth if own.breadth is None else own.breadth,
        confidence=table.confidence if own.confidence is None else own.confidence,
    )


def survival(setup: Setup, probabilities: Sequence[float], branching: Branching) -> tuple[float, ...]:
    """Return P(at least d drafted tokens right in one cycle) for d = 1 … depth.

    Args:
        setup: The launch, for K and N.
        probabilities: As `position_probabilities` gives them, one per depth.
        branching: As `branching_of` gives it.
    """
    if setup.eagle_topk > 1:
        return tree_survival(tuple(probabilities), setup.eagle_topk, branching, setup.num_draft_tokens)
    chain = list(accumulate(probabilities[: setup.num_draft_tokens - 1], mul))
    return (*chain, *[0.0] * (len(probabilities) - len(chain)))


def accept_length(survivals: Sequence[float]) -> float:
    """Return τ, the mean tokens per cycle, bonus token included."""
    return 1.0 + sum(survivals)
