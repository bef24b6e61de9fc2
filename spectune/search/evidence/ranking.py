"""Which candidates are best so far, and which of the others may well be better."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from statistics import NormalDist

from spectune.analysis.places import apart
from spectune.search.evidence.speeds import by_candidate
from spectune.search.evidence.timeline import Timeline
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.values import keeps_bounds, measured_values, score
from spectune.space import Candidate, SearchSpace

Standing = Callable[[Sequence[TrialRecord], Candidate], float | None]
"""What is believed of a candidate after some launches, as mean log of the objectives; None where nothing is."""
Believed = Callable[[Candidate], float | None]
"""The same after all launches so far. One launch is lucky, another is not, and what similar candidates measured says
which."""

SMALL_CHANCE = 0.25
"""Chance to be faster than the best below which a candidate is no rival."""


def rivals(
    line: Timeline,
    space: SearchSpace,
    *,
    speculative: bool,
    believed: Believed | None = None,
    least: float = SMALL_CHANCE,
    margin: float = 0.0,
    among: Container[Candidate] | None = None,
    of: Candidate | None = None,
) -> list[Candidate]:
    """Return the best candidate of a branch, or another one, and those that may well be better, the best first.

    None before a launch of the branch. Those that keep the constraints, unless none does.

    Args:
        line: The launches.
        space: Their search space.
        speculative: Which branch.
        believed: What is believed of a candidate instead of the mean of its own launches.
        least: Chance to be faster than the best that makes a rival.
        margin: By how much faster, in ln speed.
        among: Who is asked about; None for all that were launched.
        of: Whose rivals they are, instead of the best one's; passed over where it is not of the branch.
    """
    asked = by_candidate(
        record for record in line.every
        if record.candidate.speculative is speculative and (among is None or record.candidate in among)
    )  # fmt: skip
    kept = {candidate: group for candidate, group in asked.items() if keeps_bounds(group, space)} or asked
    means = {candidate: _mean(candidate, group, space, believed) for candidate, group in kept.items()}
    ranked = sorted(means, key=lambda candidate: -means[candidate])
    if not ranked:
        return []
    champion = of if of is not None and of in kept else ranked[0]

    def chance(candidate: Candidate) -> float:
        lead = means[candidate] - means[champion] - margin
        return _chance(line, kept[candidate], kept[champion], lead)

    return [candidate for candidate in ranked if candidate == champion or chance(candidate) >= least]


def chance_to_lead(
    line: Timeline, space: SearchSpace, one: Candidate, other: Candidate, believed: Believed | None
) -> float:
    """Return the chance that one of two launched candidates is the faster one, by the noise between launches."""
    groups = by_candidate(line.every)
    mine, theirs = groups[one], groups[other]
    return _chance(line, mine, theirs, _mean(one, mine, space, believed) - _mean(other, theirs, space, believed))


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
    return max(among, key=lambda one: _mean(one, groups[one], space) if one in groups else -math.inf)


def _mean(
    candidate: Candidate, group: Sequence[TrialRecord], space: SearchSpace, believed: Believed | None = None
) -> float:
    known = None if believed is None else believed(candidate)
    return math.fsum(score(record, space) for record in group) / len(group) if known is None else known


def _chance(line: Timeline, one: Sequence[TrialRecord], other: Sequence[TrialRecord], lead: float) -> float:
    noise = line.noise.relative_sd * math.sqrt(1 / len(one) + 1 / len(other))
    places = apart((record.place for record in one), (record.place for record in other), line.doubts)
    return NormalDist().cdf(lead / math.hypot(noise, math.sqrt(places)))
