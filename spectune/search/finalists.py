"""The end of a study: when the finalists are launched instead of new candidates, and which of them is next."""

from __future__ import annotations

from collections.abc import Sequence

from spectune.search.budget import kept_for_confirmation, needed_from_now
from spectune.search.confirmation import Confirmation, confirmation
from spectune.search.proposals import Proposer
from spectune.search.records import TrialRecord
from spectune.search.situation import Situation
from spectune.search.steps import Role, Step
from spectune.search.undecided import goes_on, wanted
from spectune.space import SearchSpace


def where_it_stands(now: Situation) -> Confirmation:
    """Return where the confirmation stands, had it begun."""
    kept = kept_for_confirmation(now.space)
    return confirmation(now.records, now.space, kept, now.proposer.standing, running=now.running, place=now.place)


def search_over(now: Situation) -> bool:
    """Whether what remains of the budget is needed to confirm the finalists, or to decide what they left open.

    A budget that is raised is searched on where they left nothing open.
    """
    needed = kept_for_confirmation(now.space)
    if any(one.role is Role.CONFIRM for one in now.launches):
        state = where_it_stands(now)
        if goes_on(now.records, now.space, state):
            return True
        needed -= state.done
    return needed > 0 and needed_from_now(now.records, now.space, needed, now.running)


def next_finalist(now: Situation) -> Step | None:
    """Return the next launch of the contenders in turns, None when they are settled or have all they are to have."""
    state = where_it_stands(now)
    asked = wanted(now.records, now.space, state)
    if state.next is None or state.done + state.needs > asked.launches:
        return None
    what = "a finalist" if state.next.speculative else "the best without speculation"
    why = f"{what} once more, in turns (round {state.rounds + 1}), since the best of many is partly luck"
    return now.step(Role.CONFIRM, state.next, why, asked.look)


def still_to_confirm(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> int:
    """Return how many launches the confirmation is still to have, were the search over."""
    if not any(record.role is Role.CONFIRM for record in records):
        return kept_for_confirmation(space)
    state = where_it_stands(Situation(records, (), (), records[-1].place, space, proposer))
    return 0 if state.next is None else max(0, wanted(records, space, state).launches - state.done)
