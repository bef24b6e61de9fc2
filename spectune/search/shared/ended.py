"""Whether a shared study is over for a worker that has not joined it yet."""

from __future__ import annotations

from spectune.search.planning.plan import Stop, next_step
from spectune.search.proposing.proposals import Proposer
from spectune.search.proposing.warm_start import WarmStart
from spectune.search.shared.description import Description, asked
from spectune.search.shared.entries import standing
from spectune.search.shared.joining import space_here
from spectune.search.shared.meeting import Meeting
from spectune.search.shared.worker import Worker
from spectune.search.study import Ended
from spectune.space import SearchSpace


def ended_already(meeting: Meeting, found: Description, worker: Worker, beside: SearchSpace | None) -> Ended | None:
    """Return how a study ended, None where it has not, or where this worker's place still has a launch to make.

    Args:
        meeting: Where the study is.
        found: The study.
        worker: Who asks, with a folder of its own that holds nothing yet.
        beside: The space's file on this machine, where its prompts are files beside it.

    Raises:
        SpectuneError: The database does not answer, or the prompts or the engine are not here.
    """
    space, engine = space_here(found, worker.folder, beside)
    trials = meeting.trials(space, worker, found.takeover_s)
    now = standing(asked(meeting.address, trials.entries), worker.place)
    if not now.records:
        return None
    proposer = Proposer(space, engine, sampler=found.sampler, warm_start=WarmStart.of(worker.folder))
    step = next_step(now.records, now.interrupted, space, proposer, running=now.running, place=worker.place)
    return Ended(now.records, step) if isinstance(step, Stop) else None
