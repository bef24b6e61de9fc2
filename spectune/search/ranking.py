"""Which candidates are best so far, and which of the others may well be better."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist

from spectune.analysis.places import apart
from spectune.search.records import TrialRecord
from spectune.search.speeds import by_candidate
from spectune.search.timeline import Timeline
from spectune.search.values import keeps_bounds, measured_values, score
from spectune.space import Candidate, SearchSpace

Standing = Callable[[Sequence[TrialRecord], Candidate], float | None]
"""What is believed of a candidate after some launches, as mean log of the objectives; None where nothing is."""

SMALL_CHANCE = 0.25
"""Chance to be faster than the best below which a candidate is no rival."""


def rivals(
    line: Timeline,
    space: SearchSpace,
    *,
    speculative: bool,
    believed: Callable[[Candidate], float | None] | None = None,
) -> list[Candidate]:
    """Return the best candidate of a branch and those that may well be better, the best first.

    Those that keep the constraints, unless none does.

    Args:
        line: The launches.
        space: Their search space.
        speculative: Which branch.
        believed: What is believed of a candidate instead of the mean of its own launches: one launch is lucky, another
            is not, and what similar candidates measured says which.
    """
    groups = by_candidate(record for record in line.every if record.candidate.speculative is speculative)
    kept = {candidate: group for candidate, group in groups.items() if keeps_bounds(group, space)} or groups
    means = {one: math.fsum(score(record, space) for record in group) / len(group) for one, group in kept.items()}
    if believed is not None:
        means = {one: mean if (known := believed(one)) is None else known for one, mean in means.items()}
    ranked = sorted(means, key=lambda candidate: -means[candidate])

    def chance(candidate: Candidate) -> float:
        mine, best = kept[candidate], kept[ranked[0]]
        noise = line.noise.relative_sd * math.sqrt(1 / len(mine) + 1 / len(best))
        places = apart((record.place for record in mine), (record.place for record in best), line.doubts)
        return NormalDist().cdf((means[candidate] - means[ranked[0]]) / math.hypot(noise, math.sqrt(places)))

    return [candidate for candidate in ranked if candidate is ranked[0] or chance(candidate) >= SMALL_CHANCE]


def incumbent(records: Sequence[TrialRecord], space: SearchSpace, standing: Standing) -> Candidate | None:
    """Return the launched candidate to recommend if the search ended now, unconfirmed; None before one was measured.

    Args:
        records: All launches.
        space: Their search space.
        standing: What is believed of a candidate after some launches, if more than its own launches say.
    """
    measured = [record for record in records if measured_values(record, space)]

    def worth(record: TrialRecord) -> float:
        believed = standing(records, record.candidate)
        return score(record, space) if believed is None else believed

    return max(measured, key=worth).candidate if measured else None


def best_of(line: Timeline, among: Iterable[Candidate], space: SearchSpace) -> Candidate:
    """Return the candidate with the best mean over all its launches; the first of those never launched again."""
    groups = by_candidate(line.every)

    def mean(candidate: Candidate) -> float:
        group = groups.get(candidate)
        return -math.inf if group is None else math.fsum(score(r, space) for r in group) / len(group)

    return max(among, key=mean)
