"""A jump of the machine in a confirmation: what the others compare with is launched again before anything else."""

from __future__ import annotations

from typing import Any

from search_samples import baseline, chain, engine, record
from several_places import InOrder
from test_search_confirmation import longer

from spectune.search.answer.summary import summarise
from spectune.search.evidence.timeline import timeline
from spectune.search.planning.confirmation import confirmation
from spectune.search.planning.plan import Stop, next_step
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.space import Candidate

SPEEDS = {baseline(): 100.0, chain(4): 130.0, chain(3): 129.9, chain(2): 129.8, chain(1): 129.7}
BEST = chain(4)
MADE = 13
"""Launches up to the jump, five of the search, a round of four and a pair, and two since, which show it."""


def made(records: list[TrialRecord], candidate: Candidate, role: Role) -> TrialRecord:
    """Launch a candidate on a machine that has been slower since its twelfth launch."""
    speed = SPEEDS.get(candidate, 90.0) * (1.0 if len(records) < MADE - 2 else 0.85)
    return record(len(records), candidate, speed, role=role, accept=2.0 if candidate.speculative else 1.0)


def left_without_baseline() -> list[TrialRecord]:
    """Return launches of which all without speculation were made before a jump."""
    records: list[TrialRecord] = []
    for one in SPEEDS:
        records.append(made(records, one, Role.SEARCH if one.speculative else Role.BASELINE))
    while len(records) < MADE and (following := confirmation(records, longer(24), 6).next) is not None:
        records.append(made(records, following, Role.CONFIRM))
    rounds = [baseline(), BEST, chain(3), chain(1), BEST, baseline(), chain(1), chain(3)]
    assert [one.candidate for one in records[5:]] == rounds
    assert timeline(records, longer(24)).lacks_baseline
    return records


def gone_on(records: list[TrialRecord], trials: int) -> list[TrialRecord]:
    """Make what the plan asks for until it ends."""
    proposer, records = InOrder(longer(trials), engine(), sampler="random"), list(records)
    while isinstance(step := next_step(records, [], longer(trials), proposer), Step):
        records.append(made(records, step.candidate, step.role))
    return records


def told(records: list[TrialRecord], trials: int) -> dict[str, Any]:
    return summarise(records, longer(trials), Stop("the budget is used up"), name="small", engine="e").to_json()


def test_after_a_jump_the_baseline_is_launched_before_anything_else_then_what_was_best() -> None:
    records = gone_on(left_without_baseline(), 24)
    assert [(one.role, one.candidate) for one in records[MADE : MADE + 2]] == [
        (Role.CONFIRM, baseline()),
        (Role.CONFIRM, BEST),
    ]
    assert told(records, 24)["verdict"] == "speculation"


def test_where_the_budget_ended_before_that_the_answer_says_the_command_that_does_it() -> None:
    records = left_without_baseline()
    found = told(records, MADE)
    clause = "no launch without speculation was made since the machine jumped, so nothing can be compared"
    assert (found["recommended"], found["no_answer"], found["sentence"]) == (None, clause, f"No answer: {clause}.")
    way_out = "a larger budget launches the best without speculation again first, then the finalists in turns"
    assert found["details"] == [f"{way_out}: spectune search small.yaml --trials 17"]
    more = gone_on(records, 17)
    assert [one.candidate for one in more[MADE : MADE + 2]] == [baseline(), BEST]
    assert told(more, 17)["verdict"] == "speculation"
