"""One search of one sampler in one world, launch by launch."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from benchmarks.worlds.front import hypervolume
from benchmarks.worlds.world import World
from spectune.search.evidence.outcome import weigh
from spectune.search.evidence.ranking import incumbent
from spectune.search.guided.stopping import MARGIN, Outlook
from spectune.search.planning.plan import next_step
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.space import Budget, SearchSpace

FLOOR = 0.9  # of the default baseline, below which no hypervolume is counted


@dataclass
class Search:
    """What was found; every list has an entry per launch.

    Attributes:
        world: Name of the machine.
        sampler: Who proposed.
        seed: Of the proposals and of the noise.
        regions: Regions of the space that fail.
        scores: Noiseless log score of the recommendation, the best candidate's being 0.
        volumes: Hypervolume of what was launched, that of all candidates being 1.
        failed: Launches that failed.
        seconds: Of each proposal, on the process's clock.
        stopped_after: Launches after which the stop rule held for the first time; None if it never did.
        outdone: Whether an untried candidate was better than every launched one by more than the rule said none is.
        unconfirmed: Whether it was that much better than the one recommended when the rule held.
        false_stop: Whether one is than what the study's answer recommends at the end, after the confirmation.
    """

    world: str
    sampler: str
    seed: int
    regions: int
    scores: list[float] = field(default_factory=list)
    volumes: list[float] = field(default_factory=list)
    failed: int = 0
    seconds: list[float] = field(default_factory=list)
    stopped_after: int | None = None
    outdone: bool | None = None
    unconfirmed: bool | None = None
    false_stop: bool | None = None

    def regret(self) -> float:
        """Return what was given away on average over all launches, as a share of the best."""
        return statistics.fmean(1.0 - math.exp(value) for value in self.scores)

    def reached(self, share: float) -> int | None:
        """Return the launches after which the recommendation was within a share of the best for the first time."""
        return next((n for n, value in enumerate(self.scores, start=1) if value >= math.log1p(-share)), None)


class Unstopped(Proposer):
    """Goes on where the stop rule holds, so that what it would have missed is seen."""

    def outlook(self, records: Sequence[TrialRecord]) -> Outlook | None:  # noqa: ARG002 (the proposer's signature)
        """Return nothing: the plan never stops."""
        return None

    def stops(self, records: Sequence[TrialRecord]) -> bool:
        """Whether the plan would end the search."""
        outlook = super().outlook(records)
        return outlook is not None and outlook.enough


def search(world: World, sampler: str, seed: int, budget: int, *, whole_plan: bool = False) -> Search:
    """Search a world.

    Args:
        world: Where.
        sampler: By its name.
        seed: Of the proposals and of the noise.
        budget: Launches, the baseline included.
        whole_plan: Whether to make all launches of a study, or the baseline and what the sampler proposes.
    """
    space = world.space.with_budget(Budget(trials=2 * budget))  # so that no launch is kept for the confirmation
    proposer = Unstopped(space, world.engine, sampler=sampler, seed=seed)
    baseline = proposer.baseline()
    floor = np.array(world.logs[baseline.items]) + math.log(FLOOR)
    whole = hypervolume([np.array(logs) - floor for logs in world.logs.values() if logs is not None])
    found = Search(world.machine.name, sampler, seed, world.machine.failure_regions)
    step: Step | None = Step(0, Role.BASELINE, baseline, "the baseline")
    records: list[TrialRecord] = []
    points: list[npt.NDArray[np.float64]] = []
    while step is not None:
        records.append(world.launch(step, seed))
        logs = world.logs[step.candidate.items]
        if logs is None:
            found.failed += 1
        else:
            points.append(np.array(logs) - floor)
        began = time.process_time()
        recommended = incumbent(records, space, proposer.standing)
        found.scores.append(-math.inf if recommended is None else world.score(recommended))
        found.volumes.append(hypervolume(points) / whole if whole else 1.0)
        if len(records) == budget:
            break
        stops = found.stopped_after is None and proposer.stops(records)
        step = _step(records, space, proposer) if whole_plan else _proposed(records, proposer)
        found.seconds.append(time.process_time() - began)
        if stops:
            found.stopped_after = len(records)
            found.outdone = _missed(world, records) > max(world.score(record.candidate) for record in records)
            found.unconfirmed = _missed(world, records) > found.scores[-1]
            whole_study = _to_the_end(records, world, Proposer(space, world.engine, sampler=sampler, seed=seed), seed)
            answer = weigh(whole_study, space).recommended
            found.false_stop = answer is None or _missed(world, whole_study) > world.score(answer)
    return found


def _missed(world: World, records: Sequence[TrialRecord]) -> float:
    """Return the score from which the rule says that nothing untried has it."""
    return world.best_beside({record.candidate.items for record in records}) - math.log1p(MARGIN)


def _to_the_end(records: Sequence[TrialRecord], world: World, proposer: Proposer, seed: int) -> Sequence[TrialRecord]:
    """Make the launches that a study makes after its search: those of the confirmation, as long as the rule holds."""
    made = list(records)
    space = world.space.with_budget(Budget(trials=2 * len(made)))
    while isinstance(step := next_step(made, [], space, proposer), Step):
        made.append(world.launch(step, seed))
    return made


def _step(records: Sequence[TrialRecord], space: SearchSpace, proposer: Proposer) -> Step | None:
    step = next_step(records, [], space, proposer)
    return step if isinstance(step, Step) else None


def _proposed(records: Sequence[TrialRecord], proposer: Proposer) -> Step | None:
    proposal = proposer.propose(records)
    return None if proposal is None else Step(len(records), Role.SEARCH, proposal.candidate, proposal.why)
