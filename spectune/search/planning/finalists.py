"""The end of a study: when the finalists are launched instead of new candidates, and which of them is next."""

from __future__ import annotations

from collections.abc import Sequence

from spectune.search.evidence.unkept import speculation_breaks
from spectune.search.planning.baselines import twin
from spectune.search.planning.budget import kept_for_confirmation, needed_from_now
from spectune.search.planning.confirmation import Confirmation, confirmation
from spectune.search.planning.situation import Situation
from spectune.search.planning.undecided import goes_on, wanted
from spectune.search.proposing.exclusions import excluded, learned
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.space import Candidate, SearchSpace


def where_it_stands(now: Situation) -> Confirmation:
    """Return where the confirmation stands, had it begun."""
    kept = kept_for_confirmation(now.space)
    return confirmation(now.records, now.space, kept, now.proposer.standing, running=now.running, place=now.place)


def search_over(now: Situation) -> bool:
    """Whether what remains of the budget is needed to confirm the finalists, or to decide what they left open.

    A budget that is raised is searched on where they left nothing open. As long as there are no finalists, all of the
    budget is for the search.
    """
    needed = kept_for_confirmation(now.space)
    if any(one.role is Role.CONFIRM for one in now.launches):
        state = where_it_stands(now)
        if goes_on(now.records, now.space, state):
            return True
        needed -= state.done
    if needed <= 0:
        return False
    if needed_from_now(now.records, now.space, needed, now.running):
        return bool(where_it_stands(now).contenders)
    return needed_from_now(now.records, now.space, needed + 1, now.running) and missing_twin(now) is not None


def missing_twin(now: Situation) -> Candidate | None:
    """Return what has to be launched before the finalists are: their system settings without speculation.

    Else a gain may be that of the settings, as of captured graphs that no baseline had. None once the confirmation has
    begun, or where such a launch was made, is ruled out or cannot be.
    """
    if any(one.role is Role.CONFIRM for one in now.launches):
        return None
    finalist = next((candidate for candidate in where_it_stands(now).contenders if candidate.speculative), None)
    found = None if finalist is None else twin(finalist, now.proposer.baselines())
    if found is None or any(one.candidate == found for one in now.launches):
        return None
    return None if excluded(found, learned(now.records)) else found


def next_twin(now: Situation) -> Step | None:
    """Return the launch that the finalists wait for, None when there is none."""
    found = missing_twin(now)
    why = "without speculation, in the system settings of the finalist: its gain must not be that of the settings"
    return None if found is None else now.step(Role.SEARCH, found, why)


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
    if not records:
        return kept_for_confirmation(space)
    now = Situation(records, (), (), records[-1].place, space, proposer)
    if not any(record.role is Role.CONFIRM for record in records):
        return 0 if speculation_breaks(now.line.every, space) else kept_for_confirmation(space)
    state = where_it_stands(now)
    return 0 if state.next is None else max(0, wanted(records, space, state).launches - state.done)
