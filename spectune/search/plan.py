"""Which launch comes next, and when it is enough: a pure function of what has been launched so far."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spectune.search import baselines
from spectune.search.budget import kept_for_confirmation, needed_from_now, used_up
from spectune.search.confirmation import Confirmation, confirmation
from spectune.search.exclusions import excluded, learned
from spectune.search.proposals import Proposer
from spectune.search.records import Role, Status, Step, TrialRecord
from spectune.search.timeline import Timeline, timeline
from spectune.space import SearchSpace

if TYPE_CHECKING:
    from spectune.search.guided.stopping import Outlook

RETRIES = 2  # of a launch whose failure was not the candidate's fault
HOPELESS_AFTER = 5  # search launches, all failed
BASELINE_TRIES = 3  # different ones, before the cause is taken to be that of all


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
class Wait:
    """Nothing to launch now, although the study is not over: what others run decides what comes next.

    Attributes:
        reason: One sentence.
    """

    reason: str


def next_step(
    records: Sequence[TrialRecord],
    interrupted: Sequence[Step],
    space: SearchSpace,
    proposer: Proposer,
    *,
    running: Sequence[Step] = (),
    place: str = "",
) -> Step | Stop | Wait:
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
    """Return the end of a search in which every launch with speculation fails."""
    failed = _failed_so_far(records)
    if len(failed) < HOPELESS_AFTER:
        return None
    return Stop(f"the first {len(failed)} candidates all failed: {_common_cause(failed)}", float(len(failed)))


def _failed_so_far(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Return the launches of the search that failed, none if any that speculates was measured."""
    searching = [record for record in records if record.role is Role.SEARCH]
    decisive = [record for record in searching if record.candidate.speculative] or searching
    if any(record.status is not Status.FAILED for record in decisive):
        return []
    return [record for record in searching if record.status is Status.FAILED]


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
    known = as_now(records, line)
    if _enough(known, proposer) is not None:
        return None
    proposal = baselines.tuning(records, line, space, proposer) or proposer.propose(known)
    return None if proposal is None else Step(next_number(records), Role.SEARCH, proposal.candidate, proposal.why)


def _enough(records: Sequence[TrialRecord], proposer: Proposer) -> Outlook | None:
    """Return what is left to find if that is too little for another launch."""
    outlook = proposer.outlook(records)
    return outlook if outlook is not None and outlook.enough else None


def _found(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> Stop | None:
    outlook = _enough(as_now(records, timeline(records, space)), proposer)
    return None if outlook is None or _failed_so_far(records) else Stop(outlook.reason, outlook.chance)


def as_now(records: Sequence[TrialRecord], line: Timeline) -> list[TrialRecord]:
    """Return all launches, those that were measured as they would be on the machine as it is now."""
    now = {record.trial: record for record in line.every}
    return [now.get(record.trial, record) for record in records]


def _exhausted(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> str:
    state = _state(records, space, proposer)
    if not state.contenders:
        failed = _failed_so_far(records)
        causes = [exclusion.words for exclusion in learned(records)]
        causes += [f"{len(failed)} launches failed, mostly: {_common_cause(failed)}"] if failed and not causes else []
        lead = "no candidate with speculation was measured, so there is nothing to compare"
        return f"{lead}: {'; '.join(causes)}" if causes else lead
    if state.next is None:
        return f"{state.rounds} rounds of relaunching the best of both branches settled which is faster"
    return "every legal candidate has been launched"


def _search_over(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> bool:
    """Whether what remains of the budget is needed to confirm the finalists; a budget that is raised is searched on."""
    begun = any(record.role is Role.CONFIRM for record in records)
    needed = kept_for_confirmation(space) - (_state(records, space, proposer).done if begun else 0)
    return needed > 0 and needed_from_now(records, space, needed)


def _budget_over(records: Sequence[TrialRecord], space: SearchSpace) -> Stop | None:
    why = used_up(records, space)
    return None if why is None else Stop(why)


def _retry(records: Sequence[TrialRecord]) -> Step | None:
    """Return the last launch once more if it failed through no fault of its candidate."""
    if not records or records[-1].failure is None or _is_its_own(records[-1]):
        return None
    last = records[-1]
    tries = sum(r.candidate == last.candidate and r.role is last.role and r.failure is not None for r in records)
    if tries > RETRIES:
        return None
    assert last.failure is not None
    why = f"again, since the failure was not the candidate's ({last.failure.failure_class})"
    return Step(next_number(records), last.role, last.candidate, why)


def _baseline(records: Sequence[TrialRecord], proposer: Proposer) -> Step | Stop | None:
    """Return the launch without speculation that comes first: another one where the first of the file cannot run."""
    if _measured(records, Role.BASELINE):
        return None
    failed = [record for record in records if record.role is Role.BASELINE]
    if not failed:
        why = "no speculation, the measure of everything else"
        return Step(next_number(records), Role.BASELINE, proposer.baseline(), why)
    tried, ruled_out = {record.candidate for record in failed}, learned(failed)
    others = (c for c in proposer.baselines() if c not in tried and excluded(c, ruled_out) is None)
    another = next(others, None) if len(tried) < BASELINE_TRIES and _is_its_own(failed[-1]) else None
    if another is None:
        cause = _common_cause(failed)
        return Stop(f"there is nothing to compare with: {cause}", float(len(failed)), answered=False)
    return Step(next_number(records), Role.BASELINE, another, f"no speculation, since trial {failed[-1].trial} failed")


def _is_its_own(record: TrialRecord) -> bool:
    """Whether a failure is the candidate's fault, so that another one may run."""
    return record.failure is not None and record.failure.failure_class.blames_candidate


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
