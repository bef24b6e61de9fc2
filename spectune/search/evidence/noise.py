"""What launches of the same candidate say: how much they differ by chance, and how much between two places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from spectune.analysis.estimate import Estimate
from spectune.analysis.launch_noise import ENOUGH_DOF, LaunchNoise, launch_noise, within_launch_variance
from spectune.analysis.places import Shift, shift
from spectune.search.evidence.speeds import Speed, by_candidate
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import Candidate

BESIDE_SD = 0.2
"""Of ln of a figure from launch to launch beside other work: on two cores of which others used most, three launches of
one candidate gave 82, 354 and 405 tok/s."""


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


def scatter_of(records: Sequence[TrialRecord], speed: Speed) -> float:
    """Return the standard deviation of ln of a figure from launch to launch, what is seen within one included.

    Beside other work of the machine it is no less than `BESIDE_SD`, until repeats tell.

    Args:
        records: The launches; what was launched twice tells how much they differ, those of the search too.
        speed: The figure.
    """
    noise = noise_of(records, speed, searched=True)
    beside = any(others.noticeable for record in records for others in record.others.values())
    between = max(noise.relative_sd, BESIDE_SD) if beside and noise.dof <= ENOUGH_DOF else noise.relative_sd
    within = [within_launch_variance(value) for record in records if (value := speed(record)) is not None]
    return math.hypot(between, math.sqrt(fmean(within)) if within else 0.0)


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
