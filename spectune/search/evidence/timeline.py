"""The launches on the study's clock: drift taken out, and nothing compared across a jump of the machine.

Every place has a clock, a drift and jumps of its own, and is brought to the speed of the place of reference: that of
the first baseline.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from spectune.analysis.drift import Jump
from spectune.analysis.launch_noise import LaunchNoise, within_launch_variance
from spectune.analysis.places import Factor, shrunk
from spectune.search.evidence.noise import noise_of, shift_between
from spectune.search.evidence.place_line import PlaceLine, place_line, study_hours
from spectune.search.evidence.scaling import scaled
from spectune.search.evidence.speeds import Speed, together
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.search.storage.values import measured_values
from spectune.space import SearchSpace


@dataclass(frozen=True)
class Timeline:
    """The launches that gave every objective, brought to the time of the last one and to the place of reference.

    Attributes:
        launches: Those since the last jump of their place: only they are compared.
        before: Those before it, as fast as they would be now: they say what is worth a launch, and nothing else.
        noise: Of the objectives together, between launches.
        places: The clock of each place, that of the reference first; its figures are still its own.
        factors: How fast each place is, by name, in the same order.
    """

    launches: tuple[TrialRecord, ...]
    before: tuple[TrialRecord, ...]
    noise: LaunchNoise
    places: tuple[PlaceLine, ...]
    factors: Mapping[str, Factor]

    @property
    def reference(self) -> str:
        """The place that all figures are brought to."""
        return self.places[0].place if self.places else ""

    @property
    def every(self) -> tuple[TrialRecord, ...]:
        """All of them: those before a jump, then those since."""
        return self.before + self.launches

    @property
    def jumps(self) -> tuple[Jump, ...]:
        """Jumps of all places, the oldest first."""
        return tuple(sorted(itertools.chain(*(one.jumps for one in self.places)), key=lambda jump: jump.after))

    @property
    def lacks_baseline(self) -> bool:
        """Whether all launches without speculation were made before a jump: what was launched since has no measure."""
        before, since = (any(not one.candidate.speculative for one in part) for part in (self.before, self.launches))
        return before and not since

    @property
    def doubts(self) -> Mapping[str, float]:
        """Variance of ln of each place's factor."""
        return {place: factor.variance for place, factor in self.factors.items()}

    def at(self, place: str) -> PlaceLine:
        """Return the clock of a place; an empty one where nothing was measured."""
        return next((one for one in self.places if one.place == place), PlaceLine(place))


def timeline(records: Sequence[TrialRecord], space: SearchSpace) -> Timeline:
    """Return the launches of a study as they can be compared.

    Launches that were made to find something out by chance, those of the search, say nothing of drift, jumps, places or
    noise: the best of them were lucky, and their repeats would look like a slower machine.

    Args:
        records: All finished launches, in order.
        space: The search space.
    """
    speed, hours = together(space), study_hours(records)
    usable = [record for record in records if measured_values(record, space) is not None and speed(record) is not None]
    places = []
    for place in _places(usable):
        there, made = ([record for record in part if record.place == place] for part in (usable, records))
        places.append(place_line(made, there, speed, hours))
    since = [record for one in places for record in one.launches]
    noise = noise_of(since, speed, fitted=sum(one.corrected for one in places))
    factors = {one.place: _factor(since, places[0].place, one.place, speed, noise) for one in places}
    launches: list[TrialRecord] = []
    before: list[TrialRecord] = []
    for one in places:
        speedup = math.exp(-factors[one.place].log)
        launches += [scaled(record, speedup, doubt) for record, doubt in zip(one.launches, one.doubts, strict=True)]
        before += [scaled(record, speedup) for record in one.before]
    order = {record.trial: number for number, record in enumerate(records)}
    for part in (launches, before):
        part.sort(key=lambda record: order[record.trial])
    return Timeline(tuple(launches), tuple(before), noise, tuple(places), factors)


def as_in(records: Sequence[TrialRecord], line: Timeline, place: str) -> list[TrialRecord]:
    """Return the launches of all places as fast as they would have been in one of them."""
    own = line.factors.get(place, Factor()).log
    return [scaled(one, math.exp(own - line.factors.get(one.place, Factor()).log)) for one in records]


def causes(jump: Jump, records: Sequence[TrialRecord]) -> list[str]:
    """Return what is known to have changed on the machine between the two launches of a jump.

    The one place where a jump meets the fingerprints that launches carry.
    """
    by_trial = {record.trial: record for record in records}
    place = by_trial[jump.after].place if jump.after in by_trial else ""
    known = set(map(str, by_trial[jump.before].environment_changes)) if jump.before in by_trial else set()
    between = [record for record in records if jump.before < record.trial <= jump.after and record.place == place]
    changes = [str(change) for record in between for change in record.environment_changes]
    return [change for change in dict.fromkeys(changes) if change not in known]


def _places(records: Sequence[TrialRecord]) -> list[str]:
    """Return the places of launches, that of the first baseline first."""
    names = list(dict.fromkeys(record.place for record in records))
    first = next((record.place for record in records if record.role is Role.BASELINE), names[0] if names else "")
    return [first, *(name for name in names if name != first)] if names else []


def _factor(records: Sequence[TrialRecord], reference: str, place: str, speed: Speed, noise: LaunchNoise) -> Factor:
    """Return how fast a place is, given what launches of the same candidate differ by anyway."""
    if place == reference:
        return Factor()
    within = [within_launch_variance(value) for record in records if (value := speed(record)) is not None]
    return shrunk(shift_between(records, reference, place, speed), noise.relative_sd**2 + fmean(within))
