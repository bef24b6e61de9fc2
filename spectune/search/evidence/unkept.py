"""Constraints that no measured candidate keeps, or none of a branch: the one place that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spectune.search.evidence.speeds import by_candidate
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.values import Bound, bounds, keeps_bounds
from spectune.space import Candidate, SearchSpace
from spectune.space.metrics import METRICS

Groups = Mapping[Candidate, Sequence[TrialRecord]]


def unkept(records: Sequence[TrialRecord], space: SearchSpace) -> str | None:
    """Return what no launch keeps, or none of a branch, with the best that was reached and what helps.

    Args:
        records: The launches that are compared; a candidate is judged by the mean of its own.
        space: Their search space.

    Returns:
        A clause without a full stop; None where each measured branch has a candidate that keeps everything.
    """
    groups = by_candidate(records)
    branches = {
        "": groups,
        " with speculation": {one: group for one, group in groups.items() if one.speculative},
        " without speculation": {one: group for one, group in groups.items() if not one.speculative},
    }
    return next((_told(whose, among, space) for whose, among in branches.items() if _none_keeps(among, space)), None)


def speculation_breaks(records: Sequence[TrialRecord], space: SearchSpace) -> bool:
    """Whether speculation was measured, but never within the constraints: then there is nothing to confirm."""
    return _none_keeps(by_candidate(record for record in records if record.candidate.speculative), space)


def _none_keeps(groups: Groups, space: SearchSpace) -> bool:
    """Whether there are candidates, and none keeps everything."""
    return bool(groups) and not any(keeps_bounds(group, space) for group in groups.values())


def _told(whose: str, groups: Groups, space: SearchSpace) -> str:
    """Say it of candidates none of which keeps everything."""
    asked = bounds(space)
    never = [bound for bound in asked if not any(map(bound.kept, groups.values()))]
    if not never:
        return _told_together(whose, groups, asked, space)
    told = []
    for bound in never:
        best = min(groups, key=lambda one: _excess([bound], groups[one]))
        told.append(f"{_words(bound)}: the best reached {_reached(bound, groups[best])} ({space.label(best)})")
    remedy = "loosen them" if len(never) > 1 else "raise it" if never[0].most else "lower it"
    return f"no launch{whose} keeps {', nor '.join(told)}; {remedy} or widen the search"


def _told_together(whose: str, groups: Groups, asked: Sequence[Bound], space: SearchSpace) -> str:
    """Say it where each bound is kept by some candidate, and all of them by none."""
    closest = min(groups, key=lambda one: _excess(asked, groups[one]))
    wanted = " and ".join(map(_words, asked))
    broken = [bound for bound in asked if not bound.kept(groups[closest])]
    reached = " and ".join(f"{_reached(bound, groups[closest])}, not {_words(bound)}" for bound in broken)
    return (
        f"no launch{whose} keeps {wanted} together: the closest reached {reached} ({space.label(closest)}); loosen "
        "them or widen the search"
    )


def _excess(asked: Sequence[Bound], launches: Sequence[TrialRecord]) -> float:
    """Return by how much the worst of some bounds is broken, relative to it."""
    return max(bound.excess(launches) or 0.0 for bound in asked)


def _reached(bound: Bound, launches: Sequence[TrialRecord]) -> str:
    return f"{bound.measured(launches):.4g} {METRICS[bound.metric].unit}"


def _words(bound: Bound) -> str:
    return f"{bound.metric} {bound.sign} {bound.limit:g} at {bound.level}"
