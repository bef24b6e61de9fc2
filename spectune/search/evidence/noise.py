"""What launches of the same candidate say: how much they differ by chance, and how much between two places."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spectune.analysis.estimate import Estimate
from spectune.analysis.launch_noise import LaunchNoise, launch_noise
from spectune.analysis.places import Shift, shift
from spectune.search.evidence.speeds import Speed, by_candidate
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import Candidate


def noise_of(records: Sequence[TrialRecord], speed: Speed, *, fitted: int = 0, searched: bool = False) -> LaunchNoise:
    """Return how much this figure differs between launches of the same candidate.

    What places differ by is taken out first, as the launches themselves show it.

    Args:
        records: The launches.
        speed: The figure.
        fitted: Parameters that were fitted to them.
        searched: Whether those of the search count. The best of them were lucky and launched again, so that they seem
            to differ by a little more than launches do: too wide an interval, where few others were launched twice.
    """
    repeats = [record for record in records if searched or record.role is not Role.SEARCH]
    groups: dict[tuple[Candidate, str], list[Estimate]] = {}
    shifts: dict[str, Shift] = {}
    for record in repeats:
        place = record.place
        if place not in shifts:
            shifts[place] = shift_between(repeats, repeats[0].place, place, speed)
        if (value := speed(record)) is not None:
            known = place == repeats[0].place or shifts[place].weight > 0.0
            there = value.scaled(math.exp(-shifts[place].mean)) if shifts[place].mean else value
            groups.setdefault((record.candidate, "" if known else place), []).append(there)
    return launch_noise(groups.values(), fitted=fitted + sum(one.weight > 0.0 for one in shifts.values()))


def shift_between(records: Sequence[TrialRecord], here: str, there: str, speed: Speed) -> Shift:
    """Return how much faster a place is than another, by what was launched in both, those of the search left out.

    The best of a search were lucky: where they are launched once more looks like a slower place.
    """
    if here == there:
        return Shift(0.0, 0.0)
    groups = by_candidate(record for record in records if record.role is not Role.SEARCH)
    return shift([(_logs(group, here, speed), _logs(group, there, speed)) for group in groups.values()])


def _logs(group: Sequence[TrialRecord], place: str, speed: Speed) -> list[float]:
    values = (speed(record) for record in group if record.place == place)
    return [math.log(value.est) for value in values if value is not None and value.est > 0.0]
