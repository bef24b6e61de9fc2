"""Two studies side by side: the same candidates, baselines and recommendations, then and now.

Method. A speed is the geometric mean over the launches that count in its study, with the interval its study gives it.
For a ratio of the two, the launch noise of both studies is pooled, each candidate's launches around their own mean in
their own study. A baseline that both studies measured tells what became of the machine; what is left of a candidate's
change without it is the candidate's own. Where many candidates are compared, their intervals allow for all of them
(Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectune.analysis.change_words import beyond, change_words
from spectune.analysis.comparison import Comparison, LaunchSpeed, compare, mean_speed
from spectune.analysis.estimate import Estimate
from spectune.analysis.launch_noise import LaunchNoise
from spectune.search.evidence.noise import noise_of
from spectune.search.evidence.outcome import Evidence
from spectune.search.evidence.recorded import best_baseline, pooled_noise
from spectune.search.evidence.speeds import by_candidate, of_level, speeds
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import DRAFTER, Candidate, SearchSpace, Value

RECOMMENDED, BASELINE, BOTH, OTHER_DRAFTER = "recommended", "best baseline", "in both", "same but for the drafter"


@dataclass(frozen=True)
class Side:
    """One study.

    Attributes:
        name: The study.
        space: Its search space.
        evidence: What its launches say.
    """

    name: str
    space: SearchSpace
    evidence: Evidence

    @property
    def groups(self) -> dict[Candidate, list[TrialRecord]]:
        """The launches that count, by candidate."""
        return by_candidate(self.evidence.records)


@dataclass(frozen=True)
class LevelChange:
    """One pair at one level.

    Attributes:
        level: Where.
        before: Decode speed in the first study, tok/s of one request, with the interval over its launches.
        after: In the second.
        change: The second against the first.
        own: The change without the machine's; None where that is not known, or is this very change.
        accept_lengths: In the first and in the second.
    """

    level: str
    before: Estimate
    after: Estimate
    change: Comparison
    own: Comparison | None
    accept_lengths: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        """Return it for `--json`."""
        own = self.own and {"ratio": self.own.judged.to_json(), "words": change_words(self.own)}
        return {
            "level": self.level,
            "decode_speed": [self.before.to_json(), self.after.to_json()],
            "accept_length": list(self.accept_lengths),
            "ratio": self.change.judged.to_json(),
            "words": change_words(self.change),
            "beyond_machine": own,
        }


@dataclass(frozen=True)
class Pair:
    """A candidate of the first study beside one of the second.

    Attributes:
        roles: Why they are compared.
        before: The first.
        after: The second.
        confirmed: Whether each was confirmed by launches made after it was picked.
        levels: Their speeds at every level both studies have.
    """

    roles: tuple[str, ...]
    before: Candidate
    after: Candidate
    confirmed: tuple[bool, bool]
    levels: tuple[LevelChange, ...]


@dataclass(frozen=True)
class StudyComparison:
    """Everything two studies say of each other.

    Attributes:
        machine: The baseline that tells of the machine; None where no baseline was measured in both.
        pairs: Recommendations, best baselines, then every candidate of both.
        shared_levels: The levels both have.
    """

    machine: Candidate | None
    pairs: tuple[Pair, ...]
    shared_levels: tuple[str, ...]

    @property
    def machine_pair(self) -> Pair | None:
        """The baseline that tells of the machine, then and now."""
        return next((pair for pair in self.pairs if pair.before == pair.after == self.machine), None)


def compare_studies(before: Side, after: Side) -> StudyComparison:
    """Compare two studies at the levels they share."""
    levels = tuple(name for name in before.space.workload.level_names if name in after.space.workload.level_names)
    machine = _machine(before, after)
    wanted = list(_wanted(before, after))
    table = {
        level: _Level(
            level, before, after, pooled_noise([s.evidence.line.launches for s in (before, after)], of_level(level))
        )
        for level in levels
    }  # fmt: skip
    many = sum(roles[0] in (BOTH, OTHER_DRAFTER) for roles, *_ in wanted)
    pairs = []
    for roles, was, now in wanted:
        of = many if roles[0] in (BOTH, OTHER_DRAFTER) else 1
        changes = [one for level in levels if (one := table[level].change(was, now, machine, of)) is not None]
        confirmed = (_confirmed(before.groups[was]), _confirmed(after.groups[now]))
        pairs.append(Pair(roles, was, now, confirmed, tuple(changes)))
    return StudyComparison(machine, tuple(pairs), levels)


@dataclass(frozen=True)
class _Level:
    name: str
    before: Side
    after: Side
    noise: LaunchNoise

    def change(self, was: Candidate, now: Candidate, machine: Candidate | None, of: int) -> LevelChange | None:
        one, other = self._speeds(self.before, was), self._speeds(self.after, now)
        if not one or not other:
            return None
        change = compare(self.name, other, one, self.noise, picked_from=of)
        own = None
        if machine is not None and not was == now == machine:
            base = self._speeds(self.before, machine), self._speeds(self.after, machine)
            own = beyond(change, compare(self.name, base[1], base[0], self.noise)) if all(base) else None
        lengths = (_accepted(one), change.accept_length)
        figures = (self._mean(self.before, one), self._mean(self.after, other))
        return LevelChange(self.name, *figures, change, own, lengths)

    def _mean(self, side: Side, group: Sequence[LaunchSpeed]) -> Estimate:
        """Return a speed as its own study tells it."""
        return mean_speed(group, noise_of(side.evidence.line.launches, of_level(self.name)))

    def _speeds(self, side: Side, candidate: Candidate) -> list[LaunchSpeed]:
        return speeds(side.groups[candidate], of_level(self.name), self.name, side.space)


def _wanted(before: Side, after: Side) -> list[tuple[tuple[str, ...], Candidate, Candidate]]:
    """Return (roles, candidate of the first, candidate of the second), each pair once."""
    found: dict[tuple[Candidate, Candidate], tuple[str, ...]] = {}
    ends = (
        (RECOMMENDED, before.evidence.recommended, after.evidence.recommended),
        (BASELINE, best_baseline(before.evidence), best_baseline(after.evidence)),
    )
    for role, was, now in ends:
        if was is not None and now is not None:
            found[was, now] = (*found.get((was, now), ()), role)
    shared = [candidate for candidate in before.groups if candidate in after.groups]
    for candidate in shared:
        found.setdefault((candidate, candidate), (BOTH,))
    rest = [_without_drafter(side.groups, shared) for side in (before, after)]
    for key in rest[0]:
        if key in rest[1] and len(rest[0][key]) == len(rest[1][key]) == 1:
            found.setdefault((rest[0][key][0], rest[1][key][0]), (OTHER_DRAFTER,))
    return [(roles, was, now) for (was, now), roles in found.items()]


def _without_drafter(
    groups: Mapping[Candidate, Sequence[TrialRecord]], shared: Sequence[Candidate]
) -> dict[tuple[tuple[str, Value], ...], list[Candidate]]:
    """Return the candidates that only one study has, by all their values but the drafter."""
    found: dict[tuple[tuple[str, Value], ...], list[Candidate]] = {}
    for candidate in groups:
        if candidate not in shared and candidate.drafter is not None:
            found.setdefault(tuple(item for item in candidate.items if item[0] != DRAFTER), []).append(candidate)
    return found


def _machine(before: Side, after: Side) -> Candidate | None:
    """Return the baseline both studies measured most often."""
    shared = [one for one in before.groups if not one.speculative and one in after.groups]
    return max(shared, key=lambda one: min(len(before.groups[one]), len(after.groups[one])), default=None)


def _confirmed(group: Sequence[TrialRecord]) -> bool:
    return any(record.role is Role.CONFIRM for record in group)


def _accepted(group: Sequence[LaunchSpeed]) -> float:
    return sum(launch.accept_length for launch in group) / len(group)
