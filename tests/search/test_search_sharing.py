"""The plan of a study that is made in several places at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_samples import baseline, chain, engine, record
from several_places import InOrder, Study, played
from test_search_confirmation import longer
from test_search_timeline import speed_only

from spectune.search.planning.confirmation import confirmation
from spectune.search.planning.plan import Stop, Wait, next_step
from spectune.search.proposing.optuna_draw import memory_study
from spectune.search.proposing.proposals import Proposer
from spectune.search.proposing.samplers import stock_sampler
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.serving import FailureClass
from spectune.space import DRAFTER, SearchSpace

TWO = ("a", "b")


def noisy(seed: int, slow: Sequence[str] = ()) -> Callable[[Step], float]:
    """Return speeds with 1.5 % noise, those of some places 10 % lower."""
    rng = random.Random(seed)

    def speed(step: Step) -> float:
        steps = step.candidate.num_steps or 0
        strong = step.candidate.values.get(DRAFTER) == "org/strong"
        gain = (0.06 + 0.02 * steps) * strong - 0.05 * (not strong) if steps else 0.0
        return 100.0 * (1.0 + gain) * (1.0 + rng.gauss(0, 0.015)) * (0.9 if step.place in slow else 1.0)

    return speed


def in_order(at: SearchSpace) -> InOrder:
    return InOrder(at, engine(), sampler="random")


def test_places_that_begin_at_once_all_launch_the_reference() -> None:
    at = longer(20)
    first = next_step([], [], at, in_order(at), place="a")
    assert isinstance(first, Step)
    second = next_step([], [], at, in_order(at), running=[first], place="b")
    assert isinstance(second, Step)
    assert (second.role, second.candidate, second.trial) == (Role.BASELINE, first.candidate, first.trial + 1)


def test_workers_of_one_place_that_begin_at_once_all_launch_the_reference_and_say_why() -> None:
    at = longer(20)
    first = next_step([], [], at, in_order(at), place="a")
    assert isinstance(first, Step)
    assert first.why == "no speculation, the measure of everything else"
    beside, elsewhere = (next_step([], [], at, in_order(at), running=[first], place=place) for place in "ab")
    assert isinstance(beside, Step)
    assert isinstance(elsewhere, Step)
    assert (beside.role, beside.candidate, beside.trial) == (Role.BASELINE, first.candidate, 1)
    assert beside.why == (
        "no speculation, the measure of everything else; as another worker here does: what comes later has a "
        "neighbour too, and two show how launches differ"
    )
    assert elsewhere.why == "no speculation, the measure of everything else in b"


def test_workers_of_one_place_check_the_reference_once() -> None:
    at = longer(40)
    records = [record(n, candidate, place="a") for n, candidate in enumerate([baseline(), *[chain(2)] * 6])]
    due = next_step(records, [], at, in_order(at), place="a")
    assert isinstance(due, Step)
    assert due.role is Role.DRIFT
    beside = next_step(records, [], at, in_order(at), running=[due], place="a")
    assert isinstance(beside, Step)
    assert beside.role is Role.SEARCH


def test_a_place_that_joins_later_launches_the_reference_before_anything_else() -> None:
    at = longer(20)
    records = [record(n, candidate, place="a") for n, candidate in enumerate([baseline(), chain(3)])]
    begun = Step(2, Role.SEARCH, chain(4), "begun, and given up", "a")
    found = next_step(records, [begun], at, in_order(at), place="b")
    assert isinstance(found, Step)
    assert (found.role, found.candidate, found.trial, found.place) == (Role.DRIFT, baseline(), 3, "b")
    records.append(record(3, baseline(), 90.0, role=Role.DRIFT, place="b"))
    again = next_step(records, [begun], at, in_order(at), place="b")
    assert again == Step(2, Role.SEARCH, chain(4), "begun, and given up", "b")


def test_a_place_where_the_reference_does_not_run_measures_nothing() -> None:
    at = longer(20)
    records = [record(0, baseline(), place="a")]
    records.append(record(1, baseline(), role=Role.DRIFT, place="b", failure=FailureClass.MEMORY))
    running = [Step(2, Role.SEARCH, chain(4), "x", "a")]
    waits = next_step(records, [], at, in_order(at), running=running, place="b")
    assert isinstance(waits, Wait)
    assert "the reference does not run in b" in waits.reason
    assert isinstance(next_step(records, [], at, in_order(at), place="b"), Stop)


def test_what_runs_counts_as_used_and_the_study_ends_when_nothing_does() -> None:
    at = longer(4)
    records = [record(0, baseline(), place="a"), record(1, baseline(), role=Role.DRIFT, place="b")]
    running = [Step(n, Role.SEARCH, chain(n), "x", "b") for n in (2, 3)]
    found = next_step(records, [], at, in_order(at), running=running, place="a")
    assert isinstance(found, Wait)
    assert "4 launches" in found.reason


def test_the_finalists_are_not_chosen_while_one_may_be_being_measured() -> None:
    at = longer(8)
    records = [record(0, baseline(), place="a"), record(1, baseline(), role=Role.DRIFT, place="b")]
    records.append(record(2, chain(3), 120.0, place="a"))
    running = [Step(3, Role.SEARCH, chain(4), "x", "b")]
    found = next_step(records, [], at, in_order(at), running=running, place="a")
    assert isinstance(found, Wait)
    assert "finalists" in found.reason


MARKS = {Role.BASELINE: "b", Role.SEARCH: "s", Role.DRIFT: "d", Role.CONFIRM: "c"}  # capital with speculation


@pytest.mark.parametrize(
    ("machine", "gain", "trials", "plan"),
    [
        ("steady", -1.0, 40, "bSSSsSSdSSSSSSdSSSSSSdSSSSSSdScCCccCCc"),
        ("steady", 15.0, 30, "bSSSsSSdSSSSSSdSSSSSSdcCCc"),
        ("drift", -1.0, 40, "bSSSsSSdSSSSSSdsSSSSSdsSSSSSddcCCccCCccC"),
        ("drift", 15.0, 30, "bSSSsSSdSSSSSSdsSSSSSdcCcCCccC"),
        ("jump", -1.0, 40, "bSSSsSSdSSSSSSdSSSSSSddSSSSSSdcCCccCCccC"),
        ("jump", 15.0, 30, "bSSSsSSdSSSSSSdSSSSSSdcCcCCccC"),
    ],
)
def test_one_place_alone_makes_the_plan_it_always_made(machine: str, gain: float, trials: int, plan: str) -> None:
    """Most plans were recorded before studies could be made in several places; a change of the plan shows here."""
    at, rng = longer(trials), random.Random(7)

    def speed(step: Step) -> float:
        factor = {"steady": 1.0, "drift": 0.995**step.trial, "jump": 0.85 if step.trial > 17 else 1.0}[machine]
        own = 100.0 + gain + (step.candidate.num_steps or 0) if step.candidate.speculative else 100.0
        return own * (1.0 + rng.gauss(0, 0.015)) * factor

    made = played(at, in_order(at), [""], speed).records
    marks = (MARKS[one.role].upper() if one.candidate.speculative else MARKS[one.role] for one in made)
    assert "".join(marks) == plan


def confirmed(study: Study) -> list[TrialRecord]:
    return [one for one in study.records if one.role is Role.CONFIRM]


def test_each_place_launches_both_of_a_pair() -> None:
    at = longer(40)
    study = played(at, in_order(at), TWO, noisy(3, slow=["b"]))
    final = Counter(one.candidate for one in confirmed(study)).most_common(2)
    assert {candidate.speculative for candidate, _ in final} == {False, True}
    for place in TWO:
        made = Counter(one.candidate for one in confirmed(study) if one.place == place)
        assert made[final[0][0]] == made[final[1][0]] >= 1
    assert all(isinstance(answer, Stop) for answer in study.answers.values())


def test_rivals_are_divided_among_the_places_and_the_better_ones_go_on_in_both() -> None:
    at = longer(13)
    records = [record(0, baseline(), place="a"), record(1, baseline(), role=Role.DRIFT, place="b")]
    records += [record(2, chain(3), 120.0, place="a"), record(3, chain(2), 119.0, place="b")]
    records += [record(n, chain(1, proto="LL"), 80.0, place="ab"[n % 2]) for n in range(4, 9)]
    contenders = confirmation(records, at, 8).contenders
    assert contenders == (baseline(), chain(3), chain(2))
    begun: list[Step] = []
    for place, candidate in (("a", baseline()), ("b", chain(3))):
        state = confirmation(records, at, 8, running=begun, place=place)
        assert state.next == candidate
        begun.append(Step(len(records) + len(begun), Role.CONFIRM, candidate, "x", place))
    records += [record(s.trial, s.candidate, 100.0 + 15 * s.candidate.speculative, role=s.role, place=s.place)
                for s in begun]  # fmt: skip
    assert confirmation(records, at, 8, place="a").next == chain(2)  # the last of the first round
    begun = [Step(11, Role.CONFIRM, chain(2), "x", "a")]
    assert confirmation(records, at, 8, running=begun, place="b").next == baseline()  # it has no rival: it goes on
    records += [record(11, chain(2), 121.0, role=Role.CONFIRM, place="a")]
    records += [record(12, baseline(), 100.0, role=Role.CONFIRM, place="b")]
    at_b = confirmation(records, at, 8, place="b")
    assert (at_b.rounds, at_b.next) == (1, chain(2))  # the better one goes on, where the other was launched too


def test_two_places_take_half_the_time_of_one() -> None:
    at = longer(40)
    rng = random.Random(5)
    one, two = (
        played(at, in_order(at), places, lambda step: 100.0 + step.candidate.speculative + rng.gauss(0, 1.5))
        for places in (("a",), TWO)
    )
    assert 39 <= len(two.records) <= len(one.records) == 40  # a pair may not fit
    assert two.wall <= 0.6 * one.wall


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 4), st.integers(8, 24), st.integers(0, 10_000))
def test_no_number_and_no_candidate_is_taken_twice_and_every_study_ends(places: int, trials: int, seed: int) -> None:
    rng = random.Random(seed)
    at = longer(trials)
    broken = {FailureClass.MEMORY: 0.05, FailureClass.PORT_IN_USE: 0.05}

    def fails(_: Step) -> FailureClass | None:
        return next((kind for kind, share in broken.items() if rng.random() < share), None)

    study = played(
        at, in_order(at), [f"m{n}" for n in range(places)], noisy(seed, slow=["m1"]),
        lasts=lambda _: rng.uniform(20.0, 80.0), fails=fails, killed=lambda _: rng.random() < 0.03,
    )  # fmt: skip
    assert len({one.trial for one in study.records}) == len(study.records) <= trials
    searched = Counter(
        one.candidate for one in study.records
        if one.role is Role.SEARCH and one.candidate.speculative
        and (one.failure is None or one.failure.failure_class.blames_candidate)
    )  # fmt: skip
    assert not searched or max(searched.values()) == 1
    for place in {one.place for one in study.records}:
        first = next(one for one in study.records if one.place == place)
        assert not first.candidate.speculative or any(one.role is Role.CONFIRM for one in study.records)


@pytest.mark.parametrize("sampler", ["guided", "tpe", "random"])
def test_what_runs_is_not_proposed_again(sampler: str) -> None:
    at = speed_only()
    proposer = Proposer(at, engine(), sampler=sampler)
    records = [
        record(0, baseline()),
        *(record(n, c, 110.0 + n, accept=2.0) for n, c in enumerate(proposer.openings(), 1)),
    ]
    running: list[Step] = []
    for number in range(10, 16):
        proposal = proposer.propose(records, running)
        assert proposal is not None
        assert proposal.candidate not in {one.candidate for one in (*records, *running)}
        running.append(Step(number, Role.SEARCH, proposal.candidate, proposal.why, "elsewhere"))


def test_optuna_is_told_of_what_runs() -> None:
    from optuna.trial import TrialState

    at = speed_only()
    running = [Step(1, Role.SEARCH, chain(3), "x", "elsewhere")]
    study = memory_study([record(0, baseline())], at, stock_sampler("tpe", at, seed=0), running)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE, TrialState.RUNNING]
    assert study.trials[1].user_attrs["candidate_id"] == chain(3).candidate_id
