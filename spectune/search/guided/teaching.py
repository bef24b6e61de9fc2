"""Launches that are made for what they teach, before the most promising ones are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectune.search.guided.choosing import LIKELY, promising
from spectune.search.guided.evidence import Evidence
from spectune.search.guided.landscape import Landscape
from spectune.search.guided.wording import describe
from spectune.serving import FailureClass
from spectune.space import Candidate, SearchSpace

Booleans = npt.NDArray[np.bool_]

MANY_TREES = 30  # shapes; with fewer, a launch that only teaches does not pay
SMALL_TREE = 2  # N of the first tree at most, in lengths of its chain
UNHEARD_TRIES = 3  # launches of a drafter that has failed so far
UNHEARD_FEASIBLE = 0.05  # chance to run of the next of them, at least: what is at stake is a whole drafter
EQUAL = 1e-9


@dataclass(frozen=True)
class Advice:
    """A candidate and why it is worth a launch."""

    candidate: Candidate
    why: str


def first_speculation(
    space: SearchSpace, beliefs: Landscape, evidence: Sequence[Evidence], untried: Booleans
) -> Advice | None:
    """Return the most promising candidate with speculation while none was launched.

    An earlier study may be sure that none pays; this one has to see it, and whether the earlier one is to be trusted.
    """
    if any(item.candidate.speculative for item in evidence):
        return None
    drafts = np.array([setting.drafter is not None for setting in beliefs.chart.works.settings], np.float64)
    open_ = untried & (beliefs.chart.spread(drafts) > 0.0)
    if not open_.any():
        return None
    number = int(
        np.argmax(np.where(open_ & (beliefs.feasible >= beliefs.feasible[open_].max() / 2.0), beliefs.score, -np.inf))
    )
    return Advice(beliefs.chart.table.candidate(number), f"the first speculation; {describe(space, beliefs, number)}")


def unheard(beliefs: Landscape, evidence: Sequence[Evidence], untried: Booleans) -> Advice | None:
    """Return another launch of a drafter of which nothing is known because its launches failed."""
    chart = beliefs.chart
    heard = {chart.setting(item.candidate).drafter for item in evidence if item.targets is not None}
    died = [item for item in evidence if item.failure is not None]
    failed = [chart.setting(item.candidate).drafter for item in died]
    heard |= {chart.setting(i.candidate).drafter for i in died if i.failure is FailureClass.DRAFTER}
    for drafter in chart.drafters:
        if drafter in heard or not 0 < failed.count(drafter) < UNHEARD_TRIES:
            continue
        its = np.array([s.drafter == drafter and s.topk == 1 for s in chart.works.settings], np.float64)
        chance = np.where(untried, beliefs.feasible * chart.spread(its), 0.0)
        if chance.max() < UNHEARD_FEASIBLE:
            continue
        numbers = np.flatnonzero(chance >= chance.max() - EQUAL)
        number = int(numbers[np.argmax(beliefs.score[numbers])])
        odds = f"{chance[number]:.0%}"
        why = f"nothing is known of {drafter} since its launches failed; here it is likeliest to run ({odds})"
        return Advice(chart.table.candidate(number), why)
    return None


def first_tree(
    space: SearchSpace, beliefs: Landscape, evidence: Sequence[Evidence], untried: Booleans, tried: Sequence[int]
) -> Advice | None:
    """Return the small tree that may gain most while none was launched: a large one tells less about the others.

    What it may gain it may gain by what surrounds it as well, so that the launch tells of other parameters too.
    """
    chart = beliefs.chart
    if any(chart.setting(item.candidate).topk > 1 for item in evidence):
        return None
    if sum(len(alike.at) for alike in chart.works.drafts.groups if alike.topk > 1) < MANY_TREES:
        return None
    small = [s.topk > 1 and s.tokens <= SMALL_TREE * (s.steps + 1) for s in chart.works.settings]
    open_ = untried & (chart.spread(np.array(small, np.float64)) > 0.0) & (beliefs.feasible > LIKELY)
    if not open_.any():
        return None
    number = promising(beliefs, open_, tried, np.full(beliefs.goals, 1.0 / beliefs.goals)).number
    beside = ", and the settings around it, chosen to gain most, what they do" * (chart.draft_axes < len(chart.axes))
    why = f"the first tree, a small one: it tells how much breadth adds{beside}; {describe(space, beliefs, number)}"
    return Advice(chart.table.candidate(number), why)
