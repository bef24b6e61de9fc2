"""How many draft steps are best at each load, as far as a study's launches tell: 0 is to do without speculation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spectune.analysis.best_baseline import Seen, believed
from spectune.analysis.comparison import LaunchSpeed, compare, known, mean_log
from spectune.analysis.estimate import Estimate
from spectune.analysis.preference import preferred
from spectune.counts import count
from spectune.errors import SpectuneError
from spectune.search.evidence.noise import noise_of
from spectune.search.evidence.outcome import Evidence
from spectune.search.evidence.recorded import best_baseline
from spectune.search.evidence.speeds import by_candidate, of_level, speeds, system_values
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import NUM_DRAFT_TOKENS, NUM_STEPS, Candidate, Level, SearchSpace

_SHAPE = frozenset({NUM_STEPS, NUM_DRAFT_TOKENS})


@dataclass(frozen=True)
class Tuned:
    """The best launch without speculation, where it has other settings than the table's launch.

    Attributes:
        label: Its name.
        speed: Decode speed of one request, tok/s.
        faster: Whether it is shown to be faster than the best steps of the table's launch.
    """

    label: str
    speed: float
    faster: bool


@dataclass(frozen=True)
class StepsAtLoad:
    """One load.

    Attributes:
        concurrency: Requests in flight.
        best: Steps of the fastest; the fewest of those about as fast (`analysis/preference`).
        ratios: Steps → decode speed over that of the best, with its 95 % interval.
        speeds: Steps → decode speed of one request in tok/s, geometric mean over the launches.
        confirmed: Whether a launch made after it was picked bears the best out.
        tuned: What the study compares speculation with; None where that is the launch with 0 steps, or was not measured
            here. An engine that switches to 0 steps keeps its settings, so that it does not become this one.
    """

    concurrency: int
    best: int
    ratios: Mapping[int, Estimate]
    speeds: Mapping[int, float]
    confirmed: bool
    tuned: Tuned | None

    @property
    def unclear(self) -> tuple[int, ...]:
        """Steps whose speed was not shown to differ from the best's."""
        return tuple(s for s, ratio in self.ratios.items() if s != self.best and ratio.lo <= 1.0 <= ratio.hi)

    @property
    def words(self) -> str:
        """The load in a line."""
        told = ", ".join(f"{steps}: {speed:.1f}" for steps, speed in self.speeds.items())
        doubt = f"; {', '.join(map(str, self.unclear))} not shown to differ" if self.unclear else ""
        other = "" if self.tuned is None else f"; {self.tuned.speed:.1f} with a launch of its own ({self.tuned.label})"
        return (
            f"c{self.concurrency}: {count(self.best, 'step')} best (steps: tok/s of one request; {told}){doubt}{other}"
        )


def steps_by_load(candidate: Candidate, evidence: Evidence, space: SearchSpace) -> tuple[StepsAtLoad, ...]:
    """Compare the chains that differ from a candidate in their steps alone, and the launch without speculation.

    Args:
        candidate: A chain.
        evidence: The study's launches that count.
        space: Its search space.

    Raises:
        SpectuneError: What is missing for a statement at every load.
    """
    name = space.label(candidate)
    if candidate.num_steps is None or candidate.eagle_topk != 1:
        raise SpectuneError(f"a table of steps is made of chains (top-k 1), but {name} is none")
    by_steps = _alike(candidate, by_candidate(evidence.records))
    if 0 not in by_steps:
        raise SpectuneError(
            f"nothing without speculation was measured with the other settings of {name}, so whether 0 steps are best "
            "is not known; give the search a larger budget, or fewer system parameters"
        )
    levels = [level for level in space.workload.levels if level.concurrency is not None]
    if not levels:
        raise SpectuneError("no level of this study keeps a number of requests in flight, so it tells no batch size")
    table = tuple(_at(level, by_steps, evidence, space) for level in sorted(levels, key=_size))
    if not any(entry.best for entry in table):
        raise SpectuneError(f"0 steps are best at every load for {name}: run it without speculation instead")
    return table


def _alike(candidate: Candidate, groups: Mapping[Candidate, Sequence[TrialRecord]]) -> dict[int, Sequence[TrialRecord]]:
    """Return steps → launches of all that equal the candidate but for their steps, fewest first."""
    found: dict[int, Sequence[TrialRecord]] = {}
    for other, launches in groups.items():
        if not other.speculative and system_values(other) == system_values(candidate):
            found[0] = launches
        elif other.num_steps is not None and _without_steps(other) == _without_steps(candidate):
            found[other.num_steps] = launches
    return dict(sorted(found.items()))


def _without_steps(candidate: Candidate) -> dict[str, object]:
    return {name: value for name, value in candidate.items if name not in _SHAPE}


def _at(
    level: Level, by_steps: Mapping[int, Sequence[TrialRecord]], evidence: Evidence, space: SearchSpace
) -> StepsAtLoad:
    speed = of_level(level.name)
    noise = noise_of(evidence.line.launches, speed)
    groups: dict[int, list[LaunchSpeed]] = {}
    for steps, launches in by_steps.items():
        groups[steps] = speeds(launches, speed, level.name, space, evidence.line.doubts)
        if not groups[steps]:
            raise SpectuneError(
                f"nothing was measured with {count(steps, 'step')} at {level.name}, so its best is not known"
            )
    branch = believed({str(steps): Seen(None, known(group, noise)) for steps, group in groups.items()})
    best = int(preferred(branch, {str(steps): group[0].simplicity for steps, group in groups.items()}, noise.dof))
    compared = {steps: compare(level.name, group, groups[best], noise) for steps, group in groups.items()}
    means = {steps: math.exp(mean_log(group)) for steps, group in groups.items()}
    ratios = {s: one.speedup if s != best else Estimate.exactly(1.0) for s, one in compared.items()}
    confirmed = any(record.role is Role.CONFIRM for record in by_steps[best])
    return StepsAtLoad(
        _size(level), best, ratios, means, confirmed, _tuned(level, by_steps[0], groups[best], evidence, space)
    )


def _tuned(
    level: Level, plain: Sequence[TrialRecord], fastest: Sequence[LaunchSpeed], evidence: Evidence, space: SearchSpace
) -> Tuned | None:
    """Return the study's best launch without speculation, where it is another one than that with 0 steps."""
    best, own = best_baseline(evidence), plain[0].candidate
    if best is None or best == own:
        return None
    launches = [record for record in evidence.records if record.candidate == best]
    speed = of_level(level.name)
    found = speeds(launches, speed, level.name, space, evidence.line.doubts)
    if not found:
        return None
    lead = compare(level.name, found, fastest, noise_of(evidence.line.launches, speed)).judged
    return Tuned(space.label(best), math.exp(mean_log(found)), faster=lead.lo > 1.0)


def _size(level: Level) -> int:
    assert level.concurrency is not None
    return level.concurrency
