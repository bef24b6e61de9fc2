"""The confirmation in several places at once: each launches both of a pair, so that what places differ by cancels.

In the first round every contender is launched once, somewhere, and each place takes one of both branches. Then every
place launches those that go on, again and again: one of each branch, or rivals. It begins a round only where all of it
can still be made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from spectune.search.storage.records import Launch, TrialRecord
from spectune.search.storage.steps import Step
from spectune.space import Candidate


@dataclass(frozen=True)
class Shared:
    """Launches of the confirmation, by candidate and place.

    Attributes:
        counts: Those that are done or being made.
    """

    counts: Counter[tuple[Candidate, str]]

    @classmethod
    def of(cls, done: Sequence[TrialRecord], running: Sequence[Step]) -> Shared:
        """Count launches."""
        launches: Sequence[Launch] = (*done, *running)
        return cls(Counter((one.candidate, one.place) for one in launches))

    @property
    def places(self) -> frozenset[str]:
        """Those that take part."""
        return frozenset(where for _, where in self.counts)

    def alone(self, place: str) -> bool:
        """Whether nobody else takes part."""
        return self.places <= {place}

    def made(self, candidate: Candidate, place: str | None = None) -> int:
        """Return how often a candidate was launched, in one place or in all."""
        return sum(n for (one, where), n in self.counts.items() if one == candidate and place in (None, where))

    def first_round(self, contenders: Sequence[Candidate], place: str) -> Candidate | None:
        """Return who is launched next here, while not all have been; None where the others are to be waited for."""
        here = {flag: sum(self.made(c, place) for c in contenders if c.speculative is flag) for flag in (False, True)}
        lacking = here[True] < here[False]
        branch = [one for one in contenders if one.speculative is lacking]
        missing = [one for one in contenders if not self.made(one)]
        due = [one for one in branch if one in missing]
        if not due and len(branch) == 1 and here[True] != here[False]:
            due = branch  # it has no rival, so it goes on whatever comes out
        return next(iter(due or missing), None)

    def lacking(self, alive: Sequence[Candidate], place: str) -> Candidate | None:
        """Return the one that was launched least here; None where no round is open."""
        fewest, most = (pick(alive, key=lambda one: self.made(one, place)) for pick in (min, max))
        return fewest if self.made(fewest, place) < self.made(most, place) else None

    def opening(self, alive: Sequence[Candidate], place: str) -> Candidate:
        """Return who begins the next round here: the first, and every other time the last."""
        return alive[-(self.made(alive[0], place) % 2)]

    def owed(self, alive: Sequence[Candidate]) -> int:
        """Return how many launches the rounds need that are open somewhere."""
        made = ([self.made(one, where) for one in alive] for where in self.places)
        return sum(max(counts) - count for counts in made for count in counts)
