"""The no-speculation branch: it is tuned as the other is, and one of its candidates shows what the machine does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from spectune.search.evidence.place_line import PlaceLine
from spectune.search.evidence.ranking import rivals
from spectune.search.evidence.speeds import system_values
from spectune.search.evidence.timeline import Timeline
from spectune.search.proposing.proposals import Proposal, Proposer
from spectune.search.storage.records import Launch, Status, TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.space import Candidate, SearchSpace

CHECK_EVERY = 6
"""The reference is launched again after so many other launches."""
TUNE_EVERY = 4
"""One of so many launches of the search belongs to the no-speculation branch, as long as it has something to try; the
guided search, which sees both branches, may launch more of it where it has most left to find there."""


MOST_REPEATS = 3
"""Launches after which a candidate without speculation waits for the confirmation."""


def reference(records: Sequence[TrialRecord]) -> Candidate | None:
    """Return the first baseline: whatever is found later, it is launched again to see drift and jumps."""
    measured = (r for r in records if r.role is Role.BASELINE and r.status is Status.OK)
    return next((record.candidate for record in measured), None)


def check(records: Sequence[TrialRecord], known: Candidate, line: PlaceLine) -> str | None:
    """Return why the reference is to be launched again now in a place, None when it is not.

    Args:
        records: The launches of the place, in order.
        known: The reference.
        line: The place's clock.
    """
    if line.surprised and not (len(records) > 1 and records[-2].role is Role.DRIFT):
        return "once more: the last launch of the reference was unlike those before, by chance or for good"
    checks = (n for n, r in enumerate(reversed(records)) if r.candidate == known and r.role is not Role.SEARCH)
    since = next(checks, 0)
    if since < CHECK_EVERY:
        return None
    return f"the reference once more, to see whether the machine has changed over {since} launches"


def tuning(
    records: Sequence[TrialRecord],
    line: Timeline,
    space: SearchSpace,
    proposer: Proposer,
    running: Sequence[Step],
) -> Proposal | None:
    """Return the next candidate without speculation, None when it is not its turn or there is nothing left to try.

    First the system settings of the best speculation so far (that gives the same-mode ratio, and what helps one branch
    mostly helps the other), then one setting of the best baseline changed at a time, until none is better; then those
    that may still be the best once more.
    """
    launches: Sequence[Launch] = (*records, *running)
    searched = [one for one in launches if one.role is Role.SEARCH]
    tuned = sum(not one.candidate.speculative for one in searched)
    if (tuned + 1) * TUNE_EVERY > len(searched) + 1:
        return None
    launched = {one.candidate for one in launches}
    best = rivals(line, space, speculative=False)
    for candidate, why in _wanted(line, space, best, proposer.baselines()):
        if candidate not in launched:
            return Proposal(candidate, why)
    counts = Counter(one.candidate for one in launches)
    begun = {reference(records), *(step.candidate for step in running)}  # the reference is launched anyway
    rested = [candidate for candidate in best if candidate not in begun]
    again = min(rested, key=lambda candidate: counts[candidate], default=None)
    if again is None or len(best) == 1 or counts[again] >= MOST_REPEATS:
        return None
    return Proposal(again, "once more: it is not clear yet which launch without speculation is the best")


def _wanted(
    line: Timeline, space: SearchSpace, best: Sequence[Candidate], baselines: Sequence[Candidate]
) -> Iterator[tuple[Candidate, str]]:
    speculation = next(iter(rivals(line, space, speculative=True)), None)
    if speculation is not None and (found := twin(speculation, baselines)) is not None:
        yield found, "without speculation, in the system settings of the best speculation so far"
    for candidate in baselines if best else ():
        differing = dict(system_values(best[0]).items() ^ system_values(candidate).items())
        if len(differing) == 1:
            yield candidate, f"the best launch without speculation with another {next(iter(differing))}"


def twin(candidate: Candidate, baselines: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate without speculation in the same system settings, None where it is not legal."""
    wanted = system_values(candidate)
    return next((baseline for baseline in baselines if system_values(baseline) == wanted), None)
