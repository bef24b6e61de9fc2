"""Which launch comes next."""

from __future__ import annotations

import math

import pytest
from search_samples import SPACE, baseline, chain, engine, record, space

from spectune.search.answer.summary import summarise
from spectune.search.planning.budget import kept_for_confirmation
from spectune.search.planning.confirmation import confirmation
from spectune.search.planning.plan import Stop, next_step
from spectune.search.planning.prospect import prospect
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.serving import FailureClass
from spectune.space import SearchSpace


def after(
    records: list[TrialRecord], at: SearchSpace | None = None, interrupted: list[Step] | None = None
) -> Step | Stop:
    at = at or space()
    return next_step(records, interrupted or [], at, Proposer(at, engine(), sampler="tpe"))


def step(records: list[TrialRecord], at: SearchSpace | None = None) -> Step:
    found = after(records, at)
    assert isinstance(found, Step), found
    return found


def test_the_baseline_comes_first() -> None:
    first = step([])
    assert first.role is Role.BASELINE
    assert not first.candidate.speculative
    assert first.trial == 0


def test_then_every_drafter_gets_its_long_chain() -> None:
    records = [record(0, baseline())]
    for drafter in ("org/strong", "org/weak"):
        found = step(records)
        assert (found.role, found.candidate.drafter, found.candidate.num_steps) == (Role.SEARCH, drafter, 4)
        records.append(record(len(records), found.candidate))


def test_a_quarter_is_kept_for_pairs_of_finalist_and_baseline() -> None:
    records = [record(0, baseline())]
    while len(records) < 12:
        found = step(records)
        speed = 150.0 if found.candidate == chain(4) else 100.0
        records.append(record(len(records), found.candidate, speed, role=found.role))
    confirming = [(r.role, r.candidate) for r in records[8:]]
    pair = [(Role.CONFIRM, baseline()), (Role.CONFIRM, chain(4))]
    assert confirming == pair + pair[::-1]
    assert [r.role for r in records[1:8]] == [Role.SEARCH] * 6 + [Role.DRIFT]
    assert isinstance(after(records), Stop)


def run(records: list[TrialRecord], at: SearchSpace, fast: dict[str, float]) -> list[TrialRecord]:
    """Make every launch the plan asks for; speeds by candidate id, 100 tok/s for the others."""
    while isinstance(found := after(records, at), Step):
        speed = fast.get(found.candidate.candidate_id, 100.0)
        records = [*records, record(len(records), found.candidate, speed, role=found.role)]
    return records


def test_a_raised_budget_is_searched_with_and_a_new_finalist_confirmed() -> None:
    first = run([], space(trials=10), {chain(4).candidate_id: 150.0})
    assert len(first) == 10
    same = run(first, space(trials=14), {chain(4).candidate_id: 150.0})
    assert [r.role for r in same[10:]] == [Role.SEARCH] * 4
    better = step(first, space(trials=18)).candidate
    new = run(first, space(trials=18), {chain(4).candidate_id: 150.0, better.candidate_id: 200.0})
    assert [r.role for r in new[10:13]] == [Role.SEARCH] * 3
    assert [r.candidate for r in new if r.role is Role.CONFIRM].count(better) >= 2


def test_a_budget_that_is_lowered_below_what_was_made_says_both() -> None:
    made = run([], space(trials=8), {chain(4).candidate_id: 150.0})
    end = after(made, space(trials=2))
    assert isinstance(end, Stop)
    assert end.reason == "the budget of 2 launches is used up: 8 have been begun"


def test_no_speculation_is_searched_twice() -> None:
    records = [record(0, baseline())]
    while isinstance(found := after(records), Step) and found.role is not Role.CONFIRM:
        records.append(record(len(records), found.candidate, role=found.role))
    searched = [r.candidate for r in records if r.candidate.speculative]
    assert len(set(searched)) == len(searched)


@pytest.mark.parametrize(("trials", "kept"), [(1, 0), (7, 0), (8, 4), (10, 4), (12, 4), (24, 6), (40, 10)])
def test_share_kept(trials: int, kept: int) -> None:
    assert kept_for_confirmation(space(trials=trials)) == kept


@pytest.mark.parametrize("budget", [{"hours": 1.0}, {"gpu_hours": 8.0}])
def test_time_is_a_budget_too(budget: dict[str, float]) -> None:
    at = space(SPACE.replace("gpus: 0", "gpus: 8"), trials=None, **budget)
    records = [record(0, baseline(), total_s=300.0)]
    while isinstance(found := after(records, at), Step):
        records.append(record(len(records), found.candidate, role=found.role, total_s=299.0))
        assert math.fsum(r.seconds.total for r in records) <= 3600
    assert len(records) == 12
    assert [r.role is Role.CONFIRM for r in records] == [False] * 8 + [True] * 4
    assert f"the budget of {'1 h' if 'hours' in budget else '8 GPU-hours (1 h on 8 GPUs)'}" in found.reason


def test_a_launch_that_would_end_too_late_is_not_begun() -> None:
    at = space(hours=0.1)
    records = [record(0, baseline(), total_s=100.0), record(1, chain(3), total_s=200.0)]
    found = after(records, at)
    assert isinstance(found, Stop)
    assert found.reason == "the budget of 0.1 h allows no further launch: 1 min are left, and a launch takes 2 min"


def test_another_baseline_is_tried_where_the_first_of_the_file_cannot_run() -> None:
    records = [record(0, baseline(), failure=FailureClass.CRASH)]
    found = step(records)
    assert (found.role, found.candidate) == (Role.BASELINE, baseline("LL"))
    records.append(record(1, found.candidate, role=Role.BASELINE))
    assert step(records).role is Role.SEARCH
    dead = [*records[:1], record(1, baseline("LL"), failure=FailureClass.CRASH)]
    assert isinstance(stop := after(dead), Stop)
    assert stop.reason == "there is nothing to compare with: it was crash"


def test_the_next_baseline_differs_most_from_those_that_failed() -> None:
    at = space(
        SPACE.replace(
            "  env.NCCL_PROTO: [unset, LL]\n", "  env.A: [bad, good]\n  env.NCCL_PROTO: [unset, LL, Simple]\n"
        )
    )
    failed = [record(0, step([], at).candidate, failure=FailureClass.UNSUPPORTED)]
    assert failed[0].candidate.values["env.A"] == "bad"
    found = step(failed, at).candidate.values
    assert (found["env.A"], found["env.NCCL_PROTO"]) == ("good", "LL")


def test_a_failed_baseline_ends_the_study_without_an_answer() -> None:
    found = after([record(0, baseline(), failure=FailureClass.MEMORY)])
    assert isinstance(found, Stop)
    assert not found.answered
    assert "it was memory" in found.reason


def test_what_is_not_the_candidates_fault_is_tried_twice_more() -> None:
    records = []
    for trial in range(3):
        found = step(records)
        assert found.candidate == baseline()
        records.append(record(trial, found.candidate, failure=FailureClass.PORT_IN_USE))
    assert isinstance(after(records), Stop)


def test_a_candidates_own_failure_is_not_tried_again() -> None:
    records = [record(0, baseline()), record(1, chain(3), failure=FailureClass.MEMORY)]
    assert step(records).candidate != chain(3)


def test_five_failures_and_nothing_else_end_the_search() -> None:
    records = [record(0, baseline())]
    for trial in range(1, 6):
        found = step(records)
        records.append(record(trial, found.candidate, role=found.role, failure=FailureClass.CRASH))
    found = after(records)
    assert isinstance(found, Stop)
    assert "it was crash" in found.reason


def test_retries_are_not_told_as_other_candidates_nor_one_cause_as_that_of_all() -> None:
    classes = [FailureClass.CRASH, *[FailureClass.STARTUP_TIMEOUT] * 3]
    candidates = [chain(4), chain(3), chain(3), chain(3)]
    launches = zip(candidates, classes, strict=True)
    records = [record(0, baseline())]
    records += [record(n, candidate, failure=failure) for n, (candidate, failure) in enumerate(launches, 1)]
    found = after([*records, record(5, chain(2), failure=FailureClass.CRASH)])
    assert isinstance(found, Stop)
    assert found.reason == "the first 3 candidates all failed, in 5 launches, mostly: it was startup_timeout"


def test_drafters_that_accept_nothing_end_the_search_as_soon_as_all_have_been_tried() -> None:
    records = [record(0, baseline())]
    while isinstance(found := after(records), Step):
        assert len(records) < 4
        dead = FailureClass.DRAFTER if found.candidate.speculative else None
        records.append(record(len(records), found.candidate, role=found.role, failure=dead))
    assert "org/strong does not work: see trial 1; EAGLE3 with org/weak does not work" in found.reason


def test_an_interrupted_launch_is_made_again_first() -> None:
    begun = Step(1, Role.SEARCH, chain(2), "begun before the crash")
    assert after([record(0, baseline())], interrupted=[begun]) == begun


def test_a_space_without_speculation_ends_when_all_was_launched() -> None:
    at = space(
        "schema: 1\nname: plain\nengine: {python: python3, gpus: 0, args: {model-path: m, device: cpu}}\n"
        "search: {env.NCCL_PROTO: [unset, LL]}\nbudget: {trials: 20}\n"
    )
    assert kept_for_confirmation(at) == 0
    proposer, records = Proposer(at, engine()), list[TrialRecord]()
    plans = []
    while isinstance(found := next_step(records, [], at, proposer), Step):
        plans.append(prospect(records, at, proposer).launches)
        records.append(record(len(records), found.candidate, role=found.role))
    assert plans == [len(records)] * len(records) == [2, 2]
    assert found.reason == "every legal candidate has been launched"
    assert "speculation pays" not in prospect([], at, proposer).rests_on
    said = summarise(records, at, found, name="plain", engine="e").to_json()["sentence"]
    assert said == "Not compared: the space offers no speculation."


def test_an_exhausted_space_goes_on_to_confirmation() -> None:
    text = (
        "schema: 1\nname: one\nengine: {python: python3, gpus: 0, args: {model-path: m, device: cpu}}\n"
        "search: {speculative-algorithm: [none, EAGLE3], speculative-draft-model-path: d, speculative-num-steps: 2,\n"
        "  speculative-eagle-topk: 1, speculative-num-draft-tokens: 3}\n"
        "objectives: [{maximize: decode_speed, level: c1}]\nbudget: {trials: 20}\n"
    )
    at = space(text)
    records = [record(0, step([], at).candidate)]
    records.append(record(1, step(records, at).candidate, 120.0))
    found = step(records, at)
    assert (found.role, found.candidate.speculative) == (Role.CONFIRM, False)


def test_a_record_that_was_taken_away_leaves_a_gap_that_is_filled() -> None:
    records = [record(0, baseline()), record(2, chain(2)), record(3, chain(1))]
    assert step(records).trial == 1
    begun = Step(1, Role.SEARCH, chain(4), "begun before the crash")
    assert after(records, interrupted=[begun]) == begun


def test_finalists_keep_the_bounds() -> None:
    records = [
        record(0, baseline()),
        record(1, chain(1), 150.0, ttft_ms=900.0),
        record(2, chain(2), 120.0),
    ]
    assert confirmation(records, space(), 4).contenders == (baseline(), chain(2))
    assert confirmation(records[:2], space(), 4).contenders == ()


def test_a_search_whose_speculation_always_fails_ends_with_the_common_cause() -> None:
    at, records = space(trials=40), [record(0, baseline())]
    proposer = Proposer(at, engine())
    while isinstance(found := next_step(records, [], at, proposer), Step):
        dead = FailureClass.CRASH if found.candidate.speculative else None
        records.append(record(len(records), found.candidate, role=found.role, failure=dead))
    failed = sum(one.failure is not None for one in records)
    assert failed <= 6
    assert "it was crash" in found.reason
