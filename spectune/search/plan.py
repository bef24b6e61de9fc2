"""Which launch comes next, and when it is enough: a pure function of what has been launched so far."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spectune.search import baselines
from spectune.search.confirmation import Confirmation, confirmation
from spectune.search.exclusions import learned
from spectune.search.proposals import Proposer
from spectune.search.records import Role, Status, Step, TrialRecord
from spectune.search.timeline import Timeline, timeline
from spectune.space import SearchSpace

if TYPE_CHECKING:
    from spectune.search.guided.stopping import Outlook

RETRIES = 2  # of a launch whose failure was not the candidate's fault
HOPELESS_AFTER = 5  # search launches, all failed
CONFIRMATION_SHARE = 0.25  # of the budget
UNLIMITED_CONFIRMATIONS = 10  # launches at most, where only time is limited
LEAST_CONFIRMATIONS = 4  # one pair says little more than none
SMALLEST_CONFIRMED_BUDGET = 8  # launches; with fewer, a pair would cost more search than it is worth


@dataclass(frozen=True)
class Stop:
    """The end of a study.

    Attributes:
        reason: One sentence.
        figure: The number it rests on, None where there is none.
        answered: Whether there is something to conclude from.
    """

    reason: str
    figure: float | None = None
    answered: bool = True


@dataclass(frozen=True)
class Progress:
    """How far a study is.

    Attributes:
        done: Launches finished.
        planned: Launches the budget allows; None when only time is limited.
        spent_s: Seconds of launches so far.
        left_s: Seconds the rest may take; None before the first launch ended.
    """

    done: int
    planned: int | None
    spent_s: float
    left_s: float | None


def progress(records: Sequence[TrialRecord], space: SearchSpace, pace_s: float | None = None) -> Progress:
    """Return how far the study is, the time left estimated from the launches so far.

    Args:
        records: All finished launches.
        space: The search space with its budget.
        pace_s: Seconds a launch takes on the reader's clock, where the launches' own time is virtual.
    """
    spent = spent_s(records)
    planned = None if space.budget.trials is None else max(space.budget.trials, len(records))
    left = None
    if pace_s is not None:
        left = None if planned is None else (planned - len(records)) * pace_s
    elif records:
        by_launches = math.inf if planned is None else (planned - len(records)) * spent / len(records)
        left = min(by_launches, max(0.0, _limit_s(space) - spent))
    return Progress(len(records), planned, spent, left)


def spent_s(records: Sequence[TrialRecord]) -> float:
    """Return the seconds of all launches: what a budget in hours is counted in."""
    return math.fsum(record.seconds.total for record in records)


def kept_for_confirmation(space: SearchSpace) -> int:
    """Return how many launches are kept for confirmation: a quarter, at least two pairs of candidate and baseline."""
    trials = space.budget.trials
    if trials is None:
        return UNLIMITED_CONFIRMATIONS
    return max(LEAST_CONFIRMATIONS, 2 * round(trials / 8)) if trials >= SMALLEST_CONFIRMED_BUDGET else 0


def next_step(
    records: Sequence[TrialRecord], interrupted: Sequence[Step], space: SearchSpace, proposer: Proposer
) -> Step | Stop:
    """Return the launch to make now, or why the study ends.

    Args:
        records: All finished launches, in order.
        interrupted: Launches that were begun and never finished; they are made again first.
        space: The search space with its budget.
        proposer: Where new candidates come from.
    """
    again = interrupted[0] if interrupted else None
    return (
        _budget_over(records, space)
        or again
        or _retry(records)
        or _baseline(records, proposer)
        or _hopeless(records)
        or _check(records, space, proposer)
        or _search(records, space, proposer)
        or _confirmation(records, space, proposer)
        or _found(records, space, proposer)
        or Stop(_exhausted(records, space, proposer), float(len(records)))
    )


def next_number(records: Sequence[TrialRecord]) -> int:
    """Return the lowest number no finished launch has: a record that was taken away leaves a gap to fill."""
    taken = {record.trial for record in records}
    return next(number for number in itertools.count() if number not in taken)


def _hopeless(records: Sequence[TrialRecord]) -> Stop | None:
    searching = [record for record in records if record.role is Role.SEARCH]
    if len(searching) < HOPELESS_AFTER or _measured(records, Role.SEARCH):
        return None
    cause = _common_cause(searching)
    return Stop(f"the first {len(searching)} candidates all failed: {cause}", float(len(searching)))


def _check(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> Step | None:
    """Return the launch that shows what the machine does, when it is due."""
    if _search_over(records, space, proposer):
        return None
    known, why = baselines.reference(records), baselines.check(records, timeline(records, space))
    return None if known is None or why is None else Step(next_number(records), Role.DRIFT, known, why)


def _search(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> Step | None:
    """Return the next new candidate, None once what remains is kept for confirmation."""
    if _search_over(records, space, proposer):
        return None
    line = timeline(records, space)
    known = _as_now(records, line)
    if _enough(known, proposer) is not None:
        return None
    proposal = baselines.tuning(records, line, space, proposer) or proposer.propose(known)
    return None if proposal is None else Step(next_number(records), Role.SEARCH, proposal.candidate, proposal.why)


def _enough(records: Sequence[TrialRecord], proposer: Proposer) -> Outlook | None:
    """Return what is left to find if that is too little for another launch."""
    outlook = proposer.outlook(records)
    return outlook if outlook is not None and outlook.enough else None


def _found(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> Stop | None:
    outlook = _enough(_as_now(records, timeline(records, space)), proposer)
    return None if outlook is None else Stop(outlook.reason, outlook.chance)


def _as_now(records: Sequence[TrialRecord], line: Timeline) -> list[TrialRecord]:
    """Return all launches, those that were measured as they would be on the machine as it is now."""
    now = {record.trial: record for record in line.every}
    return [now.get(record.trial, record) for record in records]


def _exhausted(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> str:
    state = _state(records, space, proposer)
    if not state.contenders:
        causes = "; ".join(exclusion.words for exclusion in learned(records))
        lead = "no candidate with speculation was measured, so there is nothing to compare"
        return f"{lead}: {causes}" if causes else lead
    if state.next is None:
        return f"{state.rounds} rounds of relaunching the best of both branches settled which is faster"
    return "every legal candidate has been launched"


def _search_over(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> bool:
    """Whether what remains of the budget is needed to confirm the finalists; a budget that is raised is searched on."""
    kept = kept_for_confirmation(space)
    needed = kept - _state(records, space, proposer).done
    if needed <= 0:
        return False
    of_time = (1.0 - CONFIRMATION_SHARE * needed / kept) * _limit_s(space)
    return _launches(space) - len(records) <= needed or spent_s(records) >= of_time


def _launches(space: SearchSpace) -> float:
    return math.inf if space.budget.trials is None else space.budget.trials


def _budget_over(records: Sequence[TrialRecord], space: SearchSpace) -> Stop | None:
    if len(records) >= _launches(space):
        return Stop(f"the budget of {space.budget.trials} launches is used up")
    if records and spent_s(records) >= _limit_s(space):
        return Stop(f"the budget of {_limit_s(space) / 3600:.2g} hours is used up")
    return None


def _limit_s(space: SearchSpace) -> float:
    budget = space.budget
    limits = [math.inf if budget.hours is None else budget.hours]
    if budget.gpu_hours is not None and space.engine.gpus:
        limits.append(budget.gpu_hours / space.engine.gpus)
    return min(limits) * 3600


def _retry(records: Sequence[TrialRecord]) -> Step | None:
    """Return the last launch once more if it failed through no fault of its candidate."""
    if not records or records[-1].failure is None or records[-1].failure.failure_class.blames_candidate:
        return None
    last = records[-1]
    tries = sum(r.candidate == last.candidate and r.role is last.role and r.failure is not None for r in records)
    if tries > RETRIES:
        return None
    assert last.failure is not None
    why = f"again, since the failure was not the candidate's ({last.failure.failure_class})"
    return Step(next_number(records), last.role, last.candidate, why)


def _baseline(records: Sequence[TrialRecord], proposer: Proposer) -> Step | Stop | None:
    if _measured(records, Role.BASELINE):
        return None
    failed = [record for record in records if record.role is Role.BASELINE]
    if failed:
        return Stop(f"there is nothing to compare with: {_common_cause(failed)}", answered=False)
    return Step(
        next_number(records), Role.BASELINE, proposer.baseline(), "no speculation, the measure of everything else"
    )


def _state(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> Confirmation:
    return confirmation(records, space, kept_for_confirmation(space), proposer.standing)


def _confirmation(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> Step | None:
    """Return the next launch of the contenders in turns, None when they are settled or what was kept is used up."""
    state = _state(records, space, proposer)
    if state.next is None or state.done >= kept_for_confirmation(space):
        return None
    what = "a finalist" if state.next.speculative else "the best without speculation"
    why = f"{what} once more, in turns (round {state.rounds + 1}), since the best of many is partly luck"
    return Step(next_number(records), Role.CONFIRM, state.next, why)


def _measured(records: Sequence[TrialRecord], role: Role) -> bool:
    return any(record.role is role and record.status is not Status.FAILED for record in records)


def _common_cause(failed: Sequence[TrialRecord]) -> str:
    messages = [record.failure.message for record in failed if record.failure is not None]
    return max(messages, key=messages.count, default="no cause known")
