"""What a place knows when it asks what to launch next."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from spectune.search.evidence.timeline import Timeline, timeline
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import Launch, TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.space import Candidate, SearchSpace


@dataclass(frozen=True)
class Situation:
    """Where a study stands, seen from one place.

    Attributes:
        records: All finished launches, of all places, in order.
        running: Launches that other places are making.
        interrupted: Launches that were begun and never finished, and that nobody makes.
        place: Who asks.
        space: The search space with its budget.
        proposer: Where new candidates come from.
        set_aside: Launches that the space has no place for now.
    """

    records: Sequence[TrialRecord]
    running: Sequence[Step]
    interrupted: Sequence[Step]
    place: str
    space: SearchSpace
    proposer: Proposer
    set_aside: Sequence[Launch] = ()

    @cached_property
    def line(self) -> Timeline:
        """The launches as they can be compared."""
        return timeline(self.records, self.space)

    @property
    def launches(self) -> Sequence[Launch]:
        """All launches, those that other places are making among them."""
        return (*self.records, *self.running)

    @cached_property
    def here(self) -> list[TrialRecord]:
        """The finished launches of this place."""
        return [record for record in self.records if record.place == self.place]

    @cached_property
    def comparable(self) -> list[TrialRecord]:
        """All launches, those that were measured as they would be now in the place of reference."""
        return as_now(self.records, self.line)

    def runs_elsewhere(self, roles: Iterable[Role]) -> bool:
        """Whether another place makes a launch of one of these roles."""
        return any(step.role in roles for step in self.running)

    def runs_here(self, candidate: Candidate) -> bool:
        """Whether another worker of this place makes a launch of a candidate."""
        return any(step.candidate == candidate and step.place == self.place for step in self.running)

    def step(self, role: Role, candidate: Candidate, why: str, look: int = 1) -> Step:
        """Return a launch in this place, with the lowest number that no other has: a gap is filled.

        Launches that were set aside keep theirs, since they may come back.
        """
        taken = {one.trial for one in (*self.launches, *self.interrupted, *self.set_aside)}
        number = next(number for number in itertools.count() if number not in taken)
        return Step(number, role, candidate, why, self.place, look)


def as_now(records: Sequence[TrialRecord], line: Timeline) -> list[TrialRecord]:
    """Return all launches, those that were measured as they would be now in the place of reference."""
    now = {record.trial: record for record in line.every}
    return [now.get(record.trial, record) for record in records]
