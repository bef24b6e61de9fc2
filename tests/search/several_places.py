"""A study in several places on a clock of events, without an engine: the plan decides, speeds are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from search_samples import record

from spectune.search.planning.plan import Stop, Wait, next_step
from spectune.search.proposing.proposals import Proposal, Proposer
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Step
from spectune.serving import FailureClass
from spectune.space import SearchSpace

MOST_EVENTS = 400


class InOrder(Proposer):
    """Proposes the candidates with speculation as the file has them: nothing is drawn."""

    def propose(self, records: Sequence[TrialRecord], running: Sequence[Step] = ()) -> Proposal | None:
        seen = {one.candidate for one in records} | {one.candidate for one in running}
        new = next((one for one in self.all() if one.speculative and one not in seen), None)
        return None if new is None else Proposal(new, "it is next")


@dataclass
class Study:
    """How a study went.

    Attributes:
        records: Its finished launches.
        ends: When each of them ended, by number.
        answers: What the plan said last to every place.
    """

    records: list[TrialRecord] = field(default_factory=list)
    ends: dict[int, float] = field(default_factory=dict)
    answers: dict[str, Step | Stop | Wait] = field(default_factory=dict)

    @property
    def wall(self) -> float:
        return max(self.ends.values())


def played(
    at: SearchSpace,
    proposer: Proposer,
    places: Sequence[str],
    speed: Callable[[Step], float],
    *,
    lasts: Callable[[Step], float] = lambda _: 40.0,
    fails: Callable[[Step], FailureClass | None] = lambda _: None,
    killed: Callable[[Step], bool] = lambda _: False,
) -> Study:
    """Let every place make what the plan asks it for until nobody has anything to do.

    A place that is killed makes no further launch; what it was making is offered to the others.
    """
    study, now = Study(), 0.0
    busy: dict[str, tuple[float, Step]] = {}
    interrupted: list[Step] = []
    alive = list(places)
    for _ in range(MOST_EVENTS):
        for place in [one for one in alive if one not in busy]:
            others = [step for _, step in busy.values()]
            found = next_step(study.records, interrupted, at, proposer, running=others, place=place)
            study.answers[place] = found
            if isinstance(found, Step):
                assert found.place == place
                assert found.trial not in {one.trial for one in (*study.records, *others)}
                interrupted = [step for step in interrupted if step.trial != found.trial]
                busy[place] = now + lasts(found), found
        if not busy:
            return study
        place = min(busy, key=lambda one: busy[one][0])
        now, step = busy.pop(place)
        if killed(step) and len(alive) > 1:
            alive.remove(place)
            interrupted.append(step)
            continue
        accept = 2.0 if step.candidate.speculative else 1.0
        made = record(step.trial, step.candidate, speed(step), role=step.role, accept=accept,
                      failure=fails(step), total_s=max(40.0, lasts(step)), place=place)  # fmt: skip
        study.ends[step.trial] = now
        study.records = sorted([*study.records, made], key=lambda one: one.trial)
    raise AssertionError("the study does not end")
