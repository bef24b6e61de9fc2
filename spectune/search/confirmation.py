"""The last part of a study: the best of both branches launched in turns until one is shown to be faster.

The best of many noisy launches is partly lucky, so none of the launches that made a finalist one counts in its
favour. In every round each contender is launched once, in reversed order every other round, so that a drift takes as
much from one as from the other. A contender that has little chance left to be the best of its branch is dropped.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from spectune.search.outcome import weigh
from spectune.search.records import Role, TrialRecord
from spectune.search.speeds import by_candidate
from spectune.search.timeline import Timeline, timeline
from spectune.search.values import keeps_bounds, score
from spectune.space import Candidate, SearchSpace

MOST_CONTENDERS = 2
"""Of each branch."""
LAUNCHES_EACH = 4
"""A second contender of each branch needs so many more launches kept."""
SMALL_CHANCE = 0.25
"""Chance to be faster than the best of its branch below which a contender is not launched (again)."""
SETTLED = 0.999
"""Confidence of the interval that may end the rounds early; looking at every round at 95 % would find something in the
end (Haybittle 1971, Peto et al. 1976)."""
FEWEST_ROUNDS = 2


@dataclass(frozen=True)
class Confirmation:
    """Where the confirmation stands.

    Attributes:
        contenders: Those that began, baselines first; empty when a branch has none.
        done: Launches that count, of contenders and since the last jump.
        rounds: Complete rounds among them.
        next: Who is launched next; None when the comparison is settled.
    """

    contenders: tuple[Candidate, ...]
    done: int
    rounds: int
    next: Candidate | None


def confirmation(records: Sequence[TrialRecord], space: SearchSpace, kept: int) -> Confirmation:
    """Return where the confirmation stands, had it begun.

    Args:
        records: All finished launches, in order.
        space: The search space.
        kept: Launches kept for it.
    """
    block = len(list(itertools.takewhile(lambda record: record.role is Role.CONFIRM, reversed(records))))
    known = timeline(records[: len(records) - block], space)
    most = max(1, min(MOST_CONTENDERS, kept // LAUNCHES_EACH))
    branches = [_nearest_to_best(known, space, speculative=speculative)[:most] for speculative in (False, True)]
    contenders = tuple(itertools.chain(*branches))
    if not all(branches):
        return Confirmation((), 0, 0, None)
    launches = {one: [r for r in _since_jump(records, space) if r.candidate == one] for one in contenders}
    alive, rounds, settled = contenders, 0, False
    while not settled and all(len(launches[one]) > rounds for one in alive):
        last = max(launches[one][rounds].trial for one in alive)
        until = [record for record in records if record.trial <= last]
        alive, rounds = _still_standing(alive, until, space), rounds + 1
        settled = rounds >= FEWEST_ROUNDS and _settled(until, space)
    done = sum(min(len(made), rounds + 1) for made in launches.values())
    turn = alive if rounds % 2 == 0 else alive[::-1]
    missing = (one for one in turn if len(launches[one]) <= rounds)
    return Confirmation(contenders, done, rounds, None if settled else next(missing))


def _since_jump(records: Sequence[TrialRecord], space: SearchSpace) -> list[TrialRecord]:
    """Return the launches of confirmations that are not made again and were not made before the last jump."""
    jumps = timeline(records, space).jumps
    first = jumps[-1].after if jumps else 0
    return [
        record
        for record in records
        if record.role is Role.CONFIRM
        and record.trial >= first
        and (record.failure is None or record.failure.failure_class.blames_candidate)
    ]


def _nearest_to_best(line: Timeline, space: SearchSpace, *, speculative: bool) -> list[Candidate]:
    """Return the best candidate of a branch and those that may well be better, the best first.

    Those that keep the constraints, unless none does.
    """
    groups = by_candidate(record for record in line.every if record.candidate.speculative is speculative)
    kept = {candidate: group for candidate, group in groups.items() if keeps_bounds(group, space)} or groups
    return list(_likely(kept, line, space))


def _still_standing(
    alive: tuple[Candidate, ...], records: Sequence[TrialRecord], space: SearchSpace
) -> tuple[Candidate, ...]:
    line = timeline(records, space)
    groups = {candidate: group for candidate, group in by_candidate(line.every).items() if candidate in alive}
    kept: set[Candidate] = set()
    for speculative in (False, True):
        branch = {candidate: group for candidate, group in groups.items() if candidate.speculative is speculative}
        kept.update(_likely(branch, line, space))
    return tuple(candidate for candidate in alive if candidate in kept) or alive


def _likely(groups: dict[Candidate, list[TrialRecord]], line: Timeline, space: SearchSpace) -> Iterator[Candidate]:
    """Yield the candidate with the best mean, then those whose chance to be faster is not small, by their means."""
    means = {one: math.fsum(score(r, space) for r in group) / len(group) for one, group in groups.items()}
    ranked = sorted(means, key=lambda candidate: -means[candidate])
    for candidate in ranked:
        best = ranked[0]
        error = line.noise.relative_sd * math.sqrt(1 / len(groups[candidate]) + 1 / len(groups[best]))
        if candidate is best or NormalDist().cdf((means[candidate] - means[best]) / error) >= SMALL_CHANCE:
            yield candidate


def _settled(records: Sequence[TrialRecord], space: SearchSpace) -> bool:
    best = weigh(records, space).verdict.overall.best
    if best is None or min(best.launches) < FEWEST_ROUNDS:
        return False
    speedup = best.interval(SETTLED)
    return speedup.lo > 1.0 or speedup.hi < 1.0
