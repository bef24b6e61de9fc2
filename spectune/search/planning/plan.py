"""Which launch comes next, and when it is enough: a pure function of what has been launched so far.

A study may be made in several places at once. Each asks for itself, knowing what the others are making: no candidate is
searched twice, every place begins with the reference, by which it is compared with the others, and the finalists are
confirmed in all places together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spectune.counts import count
from spectune.search.evidence.unkept import unkept
from spectune.search.evidence.untried import uncovered
from spectune.search.planning import baselines
from spectune.search.planning.budget import used_up
from spectune.search.planning.finalists import next_finalist, next_twin, search_over, where_it_stands
from spectune.search.planning.situation import Situation
from spectune.search.proposing.exclusions import excluded, learned
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import Launch, Status, TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.space import Candidate, SearchSpace

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
    set_aside: Sequence[Launch] = (),
) -> Step | Stop | Wait:
    """Return the launch to make now, or why the study ends.

    Args:
        records: All finished launches, of all places, in order.
        interrupted: Launches that were begun and never finished, and that nobody makes; they are made again first.
        space: The search space with its budget.
        proposer: Where new candidates come from.
        running: Launches that other places are making now. They count as used budget; while there are any, a study
            does not end, but a place may have nothing to do.
        place: Which place asks; it makes no launch itself.
        set_aside: Launches that the space has no place for now: they count for nothing, but keep their numbers.
    """
    now = Situation(records, running, interrupted, place, space, proposer, set_aside)
    found = (
        _budget_over(now)
        or _first_here(now)
        or _again(now)
        or _retry(now)
        or _baseline(now)
        or _hopeless(now)
        or _check(now)
        or _covered(now)
        or _search(now)
        or _others_search(now)
        or next_twin(now)
        or next_finalist(now)
        or _found(now)
        or Stop(_exhausted(now), float(len(records)))
    )
    if isinstance(found, Stop) and running:
        return Wait(f"{found.reason}; launches that others make are waited for")
    return found


def _budget_over(now: Situation) -> Stop | None:
    why = used_up(now.records, now.space, now.running)
    return None if why is None else Stop(why)


def _first_here(now: Situation) -> Step | Stop | None:
    """Return the reference for a place that has not launched it: what else it measures would compare with nothing."""
    known = baselines.reference(now.records)
    made = [record for record in now.here if record.candidate == known and record.role is not Role.SEARCH]
    if known is None or any(record.status is not Status.FAILED for record in made) or search_over(now):
        return None
    if made and (_is_its_own(made[-1]) or len(made) > RETRIES):
        return Stop(f"the reference does not run in {now.place}, so nothing can be compared: {_common_cause(made)}")
    return now.step(Role.DRIFT, known, f"the reference in {now.place}, to compare it with the other places")


def _again(now: Situation) -> Step | None:
    """Return a launch that was interrupted, wherever it was begun."""
    return replace(now.interrupted[0], place=now.place) if now.interrupted else None


def _hopeless(now: Situation) -> Stop | None:
    """Return the end of a search in which every launch with speculation fails."""
    failed = _failed_so_far(now.records)
    if len(failed) < HOPELESS_AFTER:
        return None
    launches, candidates = len(failed), len({record.candidate for record in failed})
    retried = f", in {count(launches, 'launch')}" if launches > candidates else ""
    return Stop(f"the first {count(candidates, 'candidate')} all failed{retried}{_mostly(failed)}", float(launches))


def _failed_so_far(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Return the launches of the search that failed, none if any that speculates was measured."""
    searching = [record for record in records if record.role is Role.SEARCH]
    decisive = [record for record in searching if record.candidate.speculative] or searching
    if any(record.status is not Status.FAILED for record in decisive):
        return []
    return [record for record in searching if record.status is Status.FAILED]


def _check(now: Situation) -> Step | None:
    """Return the launch that shows what this place's machine does, when it is due and no other worker here makes it.

    None once the search is over: the rounds of the confirmation show it themselves, and one in between would begin them
    anew.
    """
    if _searched(now):
        return None
    known = baselines.reference(now.records)
    if known is not None and now.runs_here(known):
        return None
    why = None if known is None else baselines.check(now.here, known, now.line.at(now.place))
    return None if known is None or why is None else now.step(Role.DRIFT, known, why)


def _covered(now: Situation) -> Step | None:
    """Return what was measured outside CUDA graphs alone, in graphs: before that no comparison shows anything."""
    for one in uncovered(now.records, now.space, now.running):
        candidate = now.proposer.legal(dict(one.missing.values))
        if candidate is None or candidate in {launch.candidate for launch in now.launches}:
            continue
        if excluded(candidate, learned(now.records)) is None:
            return now.step(Role.SEARCH, candidate, one.words)
    return None


def _search(now: Situation) -> Step | None:
    """Return the next new candidate, None once what remains is kept for confirmation."""
    if _searched(now):
        return None
    proposal = baselines.tuning(now.records, now.line, now.space, now.proposer, now.running)
    proposal = proposal or now.proposer.propose(now.comparable, now.running)
    return None if proposal is None else now.step(Role.SEARCH, proposal.candidate, proposal.why)


def _searched(now: Situation) -> bool:
    """Whether the search is over: its launches are used up, or no other is worth one."""
    return search_over(now) or _enough(now) is not None


def _others_search(now: Situation) -> Wait | None:
    """Return a reason to wait before the finalists are chosen: one of them may be being measured."""
    if not now.runs_elsewhere((Role.BASELINE, Role.SEARCH)):
        return None
    return Wait("the finalists are chosen when the launches of the search that others make are done")


def _enough(now: Situation) -> Outlook | None:
    """Return what is left to find if that is too little for another launch."""
    outlook = now.proposer.outlook(now.comparable)
    return outlook if outlook is not None and outlook.enough else None


def _found(now: Situation) -> Stop | None:
    outlook = _enough(now)
    return None if outlook is None or _failed_so_far(now.records) else Stop(outlook.reason, outlook.chance)


def _exhausted(now: Situation) -> str:
    state = where_it_stands(now)
    if now.space.algorithms and not state.contenders:
        if (broken := unkept(now.line.every, now.space)) is not None:
            return f"every legal candidate has been launched, and {broken}"
        failed = _failed_so_far(now.records)
        causes = [exclusion.words for exclusion in learned(now.records)]
        if failed and not causes:
            causes = [f"{count(len(failed), 'launch')} failed{_mostly(failed)}"]
        lead = "no candidate with speculation was measured, so there is nothing to compare"
        return f"{lead}: {'; '.join(causes)}" if causes else lead
    if state.settled and state.rounds:
        return f"{count(state.rounds, 'round')} of relaunching the best of both branches settled which is faster"
    if state.needs > 1:
        return "what is left of the budget is too little for another pair of launches in one place"
    return "every legal candidate has been launched"


def _retry(now: Situation) -> Step | None:
    """Return the last launch here once more if it failed through no fault of its candidate."""
    if not now.here or now.here[-1].failure is None or _is_its_own(now.here[-1]):
        return None
    last = now.here[-1]
    tries = sum(r.candidate == last.candidate and r.role is last.role and r.failure is not None for r in now.records)
    if tries > RETRIES or any(one.candidate == last.candidate for one in now.running):
        return None
    assert last.failure is not None
    why = f"again, since the failure was not the candidate's ({last.failure.failure_class})"
    return now.step(last.role, last.candidate, why, last.look)


def _baseline(now: Situation) -> Step | Stop | None:
    """Return the launch without speculation that comes first: another one where the first of the file cannot run.

    Places that begin at once all make it: each of them needs it anyway. So do workers of one place: later launches have
    neighbours, so the measure of them must have had some too.
    """
    if any(one.role is Role.BASELINE and one.status is not Status.FAILED for one in now.records):
        return None
    failed = [record for record in now.records if record.role is Role.BASELINE]
    if not failed:
        first = now.proposer.baseline()
        return now.step(Role.BASELINE, first, _why_first(now, first))
    tried, ruled_out = {record.candidate for record in failed}, learned(failed)
    begun = [step.candidate for step in now.running if step.role is Role.BASELINE]
    begun, others = (
        [one for one in some if one not in tried and excluded(one, ruled_out) is None]
        for some in (begun, now.proposer.baselines())
    )
    another = _least_like(tried, begun or others) if len(tried) < BASELINE_TRIES and _is_its_own(failed[-1]) else None
    if another is None:
        cause = _common_cause(failed)
        return Stop(f"there is nothing to compare with: {cause}", float(len(failed)), answered=False)
    return now.step(Role.BASELINE, another, f"no speculation, since trial {failed[-1].trial} failed")


def _least_like(failed: Collection[Candidate], others: Sequence[Candidate]) -> Candidate | None:
    """Return the first of those that share fewest values with any that failed: one value may be the cause of all."""
    items = [set(candidate.items) for candidate in failed]
    return min(others, key=lambda one: max(len(values.intersection(one.items)) for values in items), default=None)


def _why_first(now: Situation, first: Candidate) -> str:
    why = "no speculation, the measure of everything else"
    if now.runs_here(first):
        beside = "as another worker here does: what comes later has a neighbour too, and two show how launches differ"
        return f"{why}; {beside}"
    return f"{why} in {now.place}" if any(step.candidate == first for step in now.running) else why


def _is_its_own(record: TrialRecord) -> bool:
    """Whether a failure is the candidate's fault, so that another one may run."""
    return record.failure is not None and record.failure.failure_class.blames_candidate


def _mostly(failed: Sequence[TrialRecord]) -> str:
    """Return the commonest cause as the end of a sentence, which says so where there are others."""
    causes = {record.failure.message for record in failed if record.failure is not None}
    return f"{', mostly' if len(causes) > 1 else ''}: {_common_cause(failed)}"


def _common_cause(failed: Sequence[TrialRecord]) -> str:
    messages = [record.failure.message for record in failed if record.failure is not None]
    return max(messages, key=messages.count, default="no cause known")
