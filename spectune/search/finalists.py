"""Who is compared in the end: the best candidate without speculation and the best with it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from spectune.search.proposals import Proposer
from spectune.search.records import Role, TrialRecord
from spectune.search.values import directions, keeps_bounds, measured_values
from spectune.space import Candidate, SearchSpace


def finalists(
    records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer | None = None
) -> tuple[Candidate, Candidate] | None:
    """Return the best candidate without and the best with speculation, None unless both were measured.

    While a confirmation is under way, the pair it began with stays.

    Args:
        records: All finished launches, in order.
        space: Their search space.
        proposer: Who may know more of a candidate than its own launches say.
    """
    under_way = itertools.takewhile(lambda record: record.role is Role.CONFIRM, reversed(records))
    confirmed = [record.candidate for record in under_way]
    found = []
    for speculative in (False, True):
        begun = [candidate for candidate in confirmed if candidate.speculative is speculative]
        group = [r for r in records if r.candidate.speculative is speculative and measured_values(r, space)]
        kept = [r for r in group if keeps_bounds(r, space)] or group
        if not kept:
            return None
        found.append(
            begun[0] if begun else max(kept, key=lambda record: ranking(record, records, space, proposer)).candidate
        )
    return found[0], found[1]


def ranking(
    record: TrialRecord, records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer | None
) -> float:
    """Return what a finalist is chosen by: what is believed of the candidate, else what this launch measured."""
    believed = None if proposer is None else proposer.standing(records, record.candidate)
    return score(record, space) if believed is None else believed


def score(record: TrialRecord, space: SearchSpace) -> float:
    """Return the mean logarithm of the objectives, minimised ones inverted: more is better, and scales cancel."""
    values = measured_values(record, space) or []
    signs = [1.0 if direction == "maximize" else -1.0 for direction in directions(space)]
    logs = [sign * math.log(value) if value > 0 else -math.inf for sign, value in zip(signs, values, strict=True)]
    return math.fsum(logs) / len(logs)
