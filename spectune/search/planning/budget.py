"""What a study may cost, in launches, hours and GPU-hours: it ends at whichever is reached first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spectune.counts import count
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Step
from spectune.space import SearchSpace

CONFIRMATION_SHARE = 0.25  # of the budget
UNLIMITED_CONFIRMATIONS = 10  # launches at most, where only time is limited
LEAST_CONFIRMATIONS = 4  # one pair says little more than none
SMALLEST_CONFIRMED_BUDGET = 8  # launches; with fewer, a pair would cost more search than it is worth
HOUR_S = 3600.0
SPARE = 1.1  # more time than is expected to be needed, since no two launches take the same


def most_launches(space: SearchSpace) -> float:
    """Return how many launches the budget names; infinite where it limits time alone."""
    return math.inf if space.budget.trials is None else space.budget.trials


def spent_s(records: Sequence[TrialRecord]) -> float:
    """Return the seconds of all launches: what a budget in hours is counted in."""
    return math.fsum(record.seconds.total for record in records)


def left_s(records: Sequence[TrialRecord], space: SearchSpace) -> float:
    """Return the seconds of launches that all places may still make together; infinite without a limit of time."""
    places = max(1, len(_places(records)))
    return min(
        ((one.limit - one.spent) * (places if one.each else 1) for one in _times(records, space)), default=math.inf
    )


def pace_s(records: Sequence[TrialRecord]) -> float:
    """Return the mean seconds of a launch, at least one having been made."""
    return spent_s(records) / len(records)


def used_up(records: Sequence[TrialRecord], space: SearchSpace, running: Sequence[Step]) -> str | None:
    """Return why the budget allows no further launch, None when it does.

    A launch that would end beyond the limit, at the pace of those so far, is not begun: whoever has a machine until
    six has it until six. Launches that are being made count as if they were done.
    """
    made, most = len(records) + len(running), most_launches(space)
    if made >= most:
        more = f": {made:,} have been begun" if made > most else ""
        return f"the budget of {count(space.budget.trials or 0, 'launch')} is used up{more}"
    limits = _times(records, space, running)
    if not records or not limits:
        return None
    time, pace = min(limits, key=lambda one: one.limit - one.spent), pace_s(records)
    if time.spent >= time.limit:
        return f"the budget of {time.words} is used up"
    if time.spent + pace > time.limit:
        left = f"{(time.limit - time.spent) / 60:.0f} min are left, and a launch takes {pace / 60:.0f} min"
        return f"the budget of {time.words} allows no further launch: {left}"
    return None


def raised_times(records: Sequence[TrialRecord], space: SearchSpace, more: int) -> dict[str, str]:
    """Return the limits of time that are too low for so many more launches: name in a space → what would do.

    Args:
        records: All launches, at least one.
        space: Their search space.
        more: Further launches, at the pace of those so far, which all places make together.
    """
    needed = {}
    for time in _times(records, space):
        to_come_s = pace_s(records) * math.ceil(more / (len(_places(records)) if time.each else 1))
        if time.spent + to_come_s > time.limit:
            needed[time.name] = f"{float(f'{SPARE * (time.spent + to_come_s) / time.unit_s:.2g}'):g}"
    return needed


def kept_for_confirmation(space: SearchSpace) -> int:
    """Return how many launches are kept for confirmation: a quarter, at least two pairs of candidate and baseline.

    None where the space offers no speculation: there is no pair then.
    """
    if not space.algorithms:
        return 0
    return UNLIMITED_CONFIRMATIONS if space.budget.trials is None else kept_of(space.budget.trials)


def kept_of(trials: int) -> int:
    """Return how many of so many launches are kept for confirmation."""
    return max(LEAST_CONFIRMATIONS, 2 * round(trials / 8)) if trials >= SMALLEST_CONFIRMED_BUDGET else 0


def needed_from_now(records: Sequence[TrialRecord], space: SearchSpace, needed: int, running: Sequence[Step]) -> bool:
    """Whether what remains of the budget is all needed for launches of the confirmation.

    Args:
        records: All launches.
        space: Their search space.
        needed: Launches of the confirmation that are still to be made, at least one.
        running: Launches that are being made.
    """
    if most_launches(space) - len(records) - len(running) <= needed:
        return True
    share = needed / kept_for_confirmation(space)
    return any(_last_part(time, share, records) for time in _times(records, space, running))


def _last_part(time: _Time, share: float, records: Sequence[TrialRecord]) -> bool:
    """Whether what remains of a limit of time is needed for a share of the confirmation.

    That is a quarter of it, as of launches, and as many launches at least. One that would end beyond it is not begun.
    """
    if not records:
        return False
    pace = pace_s(records) / (len(_places(records)) if time.each else 1)
    if time.limit < SMALLEST_CONFIRMED_BUDGET * pace:
        return False
    left = time.limit - time.spent
    return left <= CONFIRMATION_SHARE * share * time.limit or left < (math.ceil(LEAST_CONFIRMATIONS * share) + 1) * pace


@dataclass(frozen=True)
class _Time:
    """A limit of time in seconds, and what is spent of it.

    Attributes:
        name: Of the limit in a space.
        unit_s: Seconds of one of what it is given in.
        limit: Seconds.
        spent: Seconds.
        each: Whether every place has it for itself.
        words: The limit.
    """

    name: str
    unit_s: float
    limit: float
    spent: float
    each: bool
    words: str


def _times(records: Sequence[TrialRecord], space: SearchSpace, running: Sequence[Step] = ()) -> list[_Time]:
    """Return each limit of time: hours are those of the place that has launched longest, GPU-hours those of all.

    What other places are making costs GPU-hours, but no hours: it is made meanwhile.
    """
    budget, gpus = space.budget, space.engine.gpus
    limits = []
    if budget.hours is not None:
        longest = max((spent_s([r for r in records if r.place == place]) for place in _places(records)), default=0.0)
        limits.append(_Time("budget.hours", HOUR_S, budget.hours * HOUR_S, longest, True, f"{budget.hours:g} h"))
    if budget.gpu_hours is not None and gpus:
        hours, spent = budget.gpu_hours / gpus, spent_s(records)
        spent += pace_s(records) * len(running) if records else 0.0
        words = f"{budget.gpu_hours:g} GPU-hours ({hours:.2g} h on {count(gpus, 'GPU')})"
        limits.append(_Time("budget.gpu_hours", HOUR_S / gpus, hours * HOUR_S, spent, False, words))
    return limits


def _places(records: Sequence[TrialRecord]) -> set[str]:
    return {record.place for record in records}
