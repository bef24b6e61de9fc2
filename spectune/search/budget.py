"""What a study may cost, in launches, hours and GPU-hours: it ends at whichever is reached first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spectune.search.records import TrialRecord
from spectune.space import SearchSpace

CONFIRMATION_SHARE = 0.25  # of the budget
UNLIMITED_CONFIRMATIONS = 10  # launches at most, where only time is limited
LEAST_CONFIRMATIONS = 4  # one pair says little more than none
SMALLEST_CONFIRMED_BUDGET = 8  # launches; with fewer, a pair would cost more search than it is worth
HOUR_S = 3600.0


def most_launches(space: SearchSpace) -> float:
    """Return how many launches the budget names; infinite where it limits time alone."""
    return math.inf if space.budget.trials is None else space.budget.trials


def spent_s(records: Sequence[TrialRecord]) -> float:
    """Return the seconds of all launches: what a budget in hours is counted in."""
    return math.fsum(record.seconds.total for record in records)


def limit_s(space: SearchSpace) -> float:
    """Return the seconds that launches may take together: hours, or GPU-hours over the GPUs of a launch."""
    return min(_time_limits(space), default=(math.inf, ""))[0]


def pace_s(records: Sequence[TrialRecord]) -> float:
    """Return the mean seconds of a launch, at least one having been made."""
    return spent_s(records) / len(records)


def used_up(records: Sequence[TrialRecord], space: SearchSpace) -> str | None:
    """Return why the budget allows no further launch, None when it does.

    A launch that would end beyond the limit, at the pace of those so far, is not begun: whoever has a machine until
    six has it until six.
    """
    if len(records) >= most_launches(space):
        return f"the budget of {space.budget.trials} launches is used up"
    limits = _time_limits(space)
    if not records or not limits:
        return None
    (limit, words), spent, pace = min(limits), spent_s(records), pace_s(records)
    if spent >= limit:
        return f"the budget of {words} is used up"
    if spent + pace > limit:
        left = f"{(limit - spent) / 60:.0f} min are left, and a launch takes {pace / 60:.0f} min"
        return f"the budget of {words} allows no further launch: {left}"
    return None


def kept_for_confirmation(space: SearchSpace) -> int:
    """Return how many launches are kept for confirmation: a quarter, at least two pairs of candidate and baseline."""
    return UNLIMITED_CONFIRMATIONS if space.budget.trials is None else kept_of(space.budget.trials)


def kept_of(trials: int) -> int:
    """Return how many of so many launches are kept for confirmation."""
    return max(LEAST_CONFIRMATIONS, 2 * round(trials / 8)) if trials >= SMALLEST_CONFIRMED_BUDGET else 0


def needed_from_now(records: Sequence[TrialRecord], space: SearchSpace, needed: int) -> bool:
    """Whether what remains of the budget is all needed for launches of the confirmation.

    Args:
        records: All launches.
        space: Their search space.
        needed: Launches of the confirmation that are still to be made, at least one.
    """
    of_time = (1.0 - CONFIRMATION_SHARE * needed / kept_for_confirmation(space)) * limit_s(space)
    return most_launches(space) - len(records) <= needed or spent_s(records) >= of_time


def _time_limits(space: SearchSpace) -> list[tuple[float, str]]:
    """Return each limit of time in seconds, with its words."""
    budget, gpus = space.budget, space.engine.gpus
    limits = [] if budget.hours is None else [(budget.hours * HOUR_S, f"{budget.hours:g} h")]
    if budget.gpu_hours is not None and gpus:
        hours = budget.gpu_hours / gpus
        limits.append((hours * HOUR_S, f"{budget.gpu_hours:g} GPU-hours ({hours:.2g} h on {gpus} GPUs)"))
    return limits
