"""The last part of a study: the best of both branches launched in turns until one is shown to be faster.

The best of many noisy launches is partly lucky, so none of the launches that made a finalist one counts in its
favour. In every round each contender is launched once, the best of each branch first, in reversed order every other
round, so that a drift takes as much from one as from the other; several places share the work (`sharing`). After a jump
of the machine they begin anew: where that left no launch without speculation to compare with, one comes first.

Two questions may be open: whether to speculate, and with which candidate of the branch. While the first is, the rounds
are for it: where the search cannot tell which of two is the best of its branch, both are in the first round, and the
better one over all its launches goes on. Where the launches of the search leave no doubt about it, the rounds are for
the second, beside one of the other branch: what the study would recommend of the branch that is ahead, so that its
answer is one that was launched again, and rivals as long as they may be faster than that by more than a tie. Where no
speculation keeps the constraints, there is nothing to confirm.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from spectune.analysis.preference import TIE_MARGIN
from spectune.search.evidence.outcome import weigh
from spectune.search.evidence.ranking import Standing, best_of, chance_to_lead, rivals
from spectune.search.evidence.timeline import as_in, timeline
from spectune.search.evidence.unkept import speculation_breaks
from spectune.search.planning.sharing import Shared
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.space import Candidate, SearchSpace

MOST_CONTENDERS = 2
"""Of each branch, while it is open whether to speculate."""
MOST_RIVALS = 3
"""Of the branch that is ahead, where that is clear."""
LEAST_CHANCE = 0.05
"""Chance to be faster than the best, by more than a tie, that makes a rival then."""
LAUNCHES_EACH = 4
"""A second contender of each branch needs so many more launches kept."""
SETTLED = 0.999
"""Confidence of the interval that may end the rounds early; looking at every round at 95 % would find something in the
end (Haybittle 1971, Peto et al. 1976). So sure it has to be before the first round, too, that a branch is ahead,
whichever of its rivals is taken: the best of many is partly luck. That only says what is launched."""
FEWEST_ROUNDS = 2


@dataclass(frozen=True)
class Confirmation:
    """Where the confirmation stands.

    Attributes:
        contenders: Those that began, baselines first; empty when a branch has none, or no speculation is within bounds.
        counted: Numbers of the launches that count, of contenders and since the last jump, in order.
        begun: Launches of contenders that are being made.
        rounds: Complete rounds among those that are done.
        settled: Whether enough is known.
        next: Who is launched next; None when it is settled, or when others have to be waited for. A place completes
            the pair it has begun.
        needs: Launches that have to be left for that one to be worth making.
    """

    contenders: tuple[Candidate, ...]
    counted: tuple[int, ...]
    begun: int
    rounds: int
    settled: bool
    next: Candidate | None
    needs: int = 1

    @property
    def done(self) -> int:
        """How many launches count, those that are being made among them."""
        return len(self.counted) + self.begun


def confirmation(
    records: Sequence[TrialRecord],
    space: SearchSpace,
    kept: int,
    standing: Standing | None = None,
    *,
    running: Sequence[Step] = (),
    place: str = "",
) -> Confirmation:
    """Return where the confirmation stands, had it begun.

    Args:
        records: All finished launches, in order.
        space: The search space.
        kept: Launches kept for it.
        standing: What is believed of a candidate after some launches, if more than its own launches say.
        running: Launches that other places are making.
        place: Which place asks who is next.
    """
    block = len(list(itertools.takewhile(lambda record: record.role is Role.CONFIRM, reversed(records))))
    contenders, ahead = _contenders(records[: len(records) - block], space, kept, standing)
    if not contenders:
        return Confirmation((), (), 0, 0, settled=True, next=None)
    made = _since_jump(records, space)
    begun = [step for step in running if step.role is Role.CONFIRM and step.candidate in contenders]
    shared = Shared.of(made, begun)
    launches = {one: [r for r in made if r.candidate == one] for one in contenders}
    alive, rounds, settled = contenders, 0, False
    while not settled and all(len(launches[one]) > rounds for one in alive):
        last = max(launches[one][rounds].trial for one in alive)
        until = [record for record in records if record.trial <= last]
        alive, rounds = _going_on(alive, ahead, until, space), rounds + 1
        settled = rounds >= FEWEST_ROUNDS and _are_pair(alive) and _settled(until, space)
    most = rounds + max(1, len(shared.places))
    counted = tuple(sorted(record.trial for group in launches.values() for record in group[:most]))
    needs = 1
    if shared.alone(place):
        turn = _turn(alive, rounds)
        following = None if settled else next(one for one in turn if len(launches[one]) <= rounds)
    elif rounds == 0 and len(contenders) > MOST_CONTENDERS:
        following = shared.first_round(contenders, place)
    elif (following := shared.lacking(alive, place)) is None and not settled:
        following, needs = shared.opening(alive, place), len(alive) + shared.owed(alive)
    return Confirmation(contenders, counted, len(begun), rounds, settled, following, needs)


def _contenders(
    records: Sequence[TrialRecord], space: SearchSpace, kept: int, standing: Standing | None
) -> tuple[tuple[Candidate, ...], bool | None]:
    """Return who begins, and which branch is ahead for sure (whether it speculates), None where that is open."""
    known = timeline(records, space)
    if speculation_breaks(known.every, space):
        return (), None
    believed = None if standing is None else partial(standing, as_in(records, known, known.reference))
    branches = [rivals(known, space, speculative=flag, believed=believed) for flag in (False, True)]
    if not all(branches):
        return (), None
    for ahead in (False, True):
        behind = branches[not ahead][0]
        near = rivals(known, space, speculative=ahead, believed=believed, least=LEAST_CHANCE, margin=TIE_MARGIN)
        if all(chance_to_lead(known, space, one, behind, believed) > SETTLED for one in near):
            ties = rivals(known, space, speculative=ahead, believed=believed, least=LEAST_CHANCE, margin=-TIE_MARGIN)
            chosen = weigh(records, space).recommended  # an earlier confirmation's may be far behind by now
            near = _with_chosen(near, max(1, min(MOST_RIVALS, kept - 1)), chosen if chosen in ties else None)
            return ((behind, *near) if ahead else (*near, behind)), ahead
    most = max(1, min(MOST_CONTENDERS, kept // LAUNCHES_EACH))
    return tuple(itertools.chain(*(branch[:most] for branch in branches))), None


def _with_chosen(near: list[Candidate], most: int, chosen: Candidate | None) -> list[Candidate]:
    """Return the first so many of a branch, the last of them what would be recommended, unless it is among them."""
    if most < 2 or chosen is None or chosen in near[:most]:
        return near[:most]
    return [*near[: most - 1], chosen]


def _since_jump(records: Sequence[TrialRecord], space: SearchSpace) -> list[TrialRecord]:
    """Return the launches of confirmations that are not made again and were not made before a jump of their place."""
    first = {one.place: one.jumps[-1].after for one in timeline(records, space).places if one.jumps}
    return [
        record
        for record in records
        if record.role is Role.CONFIRM
        and record.trial >= first.get(record.place, 0)
        and (record.failure is None or record.failure.failure_class.blames_candidate)
    ]


def _going_on(
    alive: tuple[Candidate, ...], ahead: bool | None, records: Sequence[TrialRecord], space: SearchSpace
) -> tuple[Candidate, ...]:
    """Return who goes on: the best of each branch, or of one that is ahead the recommended one and its rivals."""
    line = timeline(records, space)

    def stay(branch: bool) -> list[Candidate]:
        if branch is not ahead:
            return [best_of(line, (one for one in alive if one.speculative is branch), space)]
        chosen = weigh(records, space).recommended
        return rivals(line, space, speculative=branch, least=LEAST_CHANCE, margin=TIE_MARGIN, among=alive, of=chosen)

    staying = [*stay(False), *stay(True)]
    return tuple(one for one in alive if one in staying)


def _turn(alive: Sequence[Candidate], rounds: int) -> Sequence[Candidate]:
    """Return them in the order of a round: a pair, then rivals, for which a budget may be too small."""
    pair = [next(one for one in alive if one.speculative is branch) for branch in (False, True)]
    others = [one for one in alive if one not in pair]
    return [*pair, *others] if rounds % 2 == 0 else [*pair[::-1], *others[::-1]]


def _are_pair(alive: Sequence[Candidate]) -> bool:
    """Whether they are one of each branch."""
    return [one.speculative for one in alive] == [False, True]


def _settled(records: Sequence[TrialRecord], space: SearchSpace) -> bool:
    best = weigh(records, space).verdict.overall.best
    if best is None or min(best.launches) < FEWEST_ROUNDS:
        return False
    speedup = best.interval(SETTLED)
    return speedup.lo > 1.0 or speedup.hi < 1.0
