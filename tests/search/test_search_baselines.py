"""The no-speculation branch: tuned, checked for drift, relaunched after surprises and jumps."""

from __future__ import annotations

from collections.abc import Callable

from search_samples import baseline, chain, engine, record
from test_search_timeline import speed_only

from spectune.search.planning.plan import next_step
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.space import SearchSpace


def played(
    speed: Callable[[Step], float], at: SearchSpace, launches: int, sampler: str = "guided"
) -> list[TrialRecord]:
    """Make the launches a plan asks for."""
    records: list[TrialRecord] = []
    proposer = Proposer(at, engine(), sampler=sampler)
    while len(records) < launches and isinstance(step := next_step(records, [], at, proposer), Step):
        accept = 2.0 if step.candidate.speculative else 1.0
        records.append(record(step.trial, step.candidate, speed(step), role=step.role, accept=accept))
    return records


def roles(records: list[TrialRecord], role: Role) -> list[int]:
    return [r.trial for r in records if r.role is role]


def test_the_reference_is_launched_again_every_few_launches() -> None:
    at = speed_only().with_budget(speed_only().budget.model_copy(update={"trials": 40}))
    records = played(lambda _: 100.0, at, 25, sampler="random")  # the guided search is soon done where all are alike
    assert roles(records, Role.DRIFT) == [7, 14, 21]
    assert {r.candidate for r in records if r.role is Role.DRIFT} == {baseline()}


def test_a_quarter_of_the_search_tunes_the_branch_without_speculation() -> None:
    at = speed_only().with_budget(speed_only().budget.model_copy(update={"trials": 40}))
    fast = chain(3, proto="LL").candidate_id
    records = played(lambda step: 150.0 if step.candidate.candidate_id == fast else 100.0, at, 25, sampler="random")
    searched = [r for r in records if r.role is Role.SEARCH]
    plain = [r for r in searched if not r.candidate.speculative]
    assert [r.candidate for r in plain] == [baseline("LL")] * 3  # nothing else is there to try: it may be the best
    assert searched.index(plain[0]) == 3
    assert searched.index(plain[1]) == 7


def test_a_surprise_is_made_again_and_a_jump_starts_the_comparison_anew() -> None:
    at = speed_only().with_budget(speed_only().budget.model_copy(update={"trials": 40}))
    records = played(lambda step: 100.0 if step.trial < 10 else 85.0, at, 18)
    assert roles(records, Role.DRIFT)[:3] == [7, 14, 15]


def test_a_chance_outlier_is_no_jump() -> None:
    at = speed_only().with_budget(speed_only().budget.model_copy(update={"trials": 40}))
    records = played(lambda step: 88.0 if step.trial == 7 else 100.0, at, 14)
    assert roles(records, Role.DRIFT) == [7, 8]


def test_a_gain_of_the_settings_is_not_taken_for_one_of_speculation() -> None:
    at = speed_only().with_budget(speed_only().budget.model_copy(update={"trials": 8}))
    proposer = Proposer(at, engine(), sampler="random")
    records = [
        record(0, baseline(), 100.0, role=Role.BASELINE),
        record(1, chain(5), 100.0, role=Role.SEARCH, accept=2.0),
        record(2, chain(3, proto="LL"), 150.0, role=Role.SEARCH, accept=2.0),
    ]
    step = next_step(records, [], at, proposer)
    assert isinstance(step, Step)
    assert (step.role, step.candidate) == (Role.SEARCH, baseline("LL"))
    assert "system settings of the finalist" in step.why
    records.append(record(3, baseline("LL"), 150.0, role=Role.SEARCH))
    step = next_step(records, [], at, proposer)
    assert isinstance(step, Step)
    assert step.role is Role.CONFIRM
    in_the_same_settings = [*records[:2], record(2, chain(3), 150.0, role=Role.SEARCH, accept=2.0)]
    step = next_step(in_the_same_settings, [], at, proposer)
    assert isinstance(step, Step)
    assert step.candidate.speculative, "the search goes on"
