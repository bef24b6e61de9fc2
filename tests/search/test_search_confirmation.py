"""The finalists in turns with the best baseline."""

from __future__ import annotations

import random
from collections.abc import Callable

from search_samples import baseline, chain, engine, record
from test_search_baselines import played
from test_search_timeline import speed_only

from spectune.search.answer.summary import summarise
from spectune.search.evidence.outcome import weigh
from spectune.search.evidence.speeds import simplicity
from spectune.search.planning.confirmation import confirmation
from spectune.search.planning.plan import Stop, next_step
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.space import DRAFTER, Candidate, SearchSpace


def longer(trials: int) -> SearchSpace:
    return speed_only().with_budget(speed_only().budget.model_copy(update={"trials": trials}))


def test_rivals_are_both_in_the_first_round_and_the_better_one_goes_on() -> None:
    records = [record(0, baseline()), record(1, chain(3), 120.0), record(2, chain(2), 119.0), record(3, chain(1), 80.0)]
    state = confirmation(records, speed_only(), 8)
    assert state.contenders == (baseline(), chain(3), chain(2))
    for candidate, speed in zip(state.contenders, (100.0, 116.0, 121.0), strict=True):
        assert confirmation(records, speed_only(), 8).next == candidate
        records.append(record(len(records), candidate, speed, role=Role.CONFIRM))
    state = confirmation(records, speed_only(), 8)
    assert (state.rounds, state.done, state.next) == (1, 3, chain(2))


def test_few_launches_kept_are_for_one_pair() -> None:
    records = [record(0, baseline()), record(1, chain(3), 104.0), record(2, chain(2), 103.0)]
    assert confirmation(records, speed_only(), 4).contenders == (baseline(), chain(3))


def confirmed(records: list[TrialRecord], kept: int, speed: Callable[[Candidate], float]) -> list[Candidate]:
    """Make the launches of a confirmation; returns who was launched."""
    begun = len(records)
    while (following := confirmation(records, speed_only(), kept).next) and len(records) < begun + kept:
        records.append(record(len(records), following, speed(following), role=Role.CONFIRM, accept=2.0))
    return [one.candidate for one in records[begun:]]


def test_where_it_is_clear_that_speculation_pays_rivals_are_launched_and_one_without() -> None:
    speeds = {baseline(): 100.0, chain(1): 127.0, chain(2): 129.0, chain(3): 130.0, chain(4): 80.0}
    records = [record(n, one, speed, accept=2.0) for n, (one, speed) in enumerate(speeds.items())]
    made = confirmed(records, 4, lambda one: 130.0 if one == chain(2) else speeds[one])
    assert made == [baseline(), chain(3), chain(2), chain(1)]
    found = weigh(records, speed_only())
    assert found.recommended == chain(2)  # the best over both of its launches
    best = found.verdict.overall.best
    assert best is not None
    assert 1.29 < best.speedup.est < 1.3  # by the launches made after it was picked, of which one chose it
    assert [one.candidate_id for one in found.ties] == [chain(3).candidate_id]


def test_where_it_is_clear_that_it_cannot_pay_the_best_without_is_looked_for() -> None:
    speeds = {baseline(): 100.0, baseline("LL"): 101.0, chain(3): 70.0, chain(2): 69.0}
    records = [record(n, one, speed) for n, (one, speed) in enumerate(speeds.items())]
    assert confirmed(records, 4, speeds.__getitem__) == [baseline("LL"), chain(3), baseline(), chain(3)]
    found = weigh(records, speed_only())
    assert (found.verdict.overall.decision, found.recommended) == ("no_speculation", baseline())  # LL is not shown


def test_what_would_be_recommended_is_launched_again_too_though_another_seemed_faster() -> None:
    speeds = {baseline(): 100.0, chain(4): 130.0, chain(3): 129.9, chain(2): 129.8, chain(1): 129.7}
    records = [record(n, one, speed, accept=2.0) for n, (one, speed) in enumerate(speeds.items())]
    found = weigh(records, speed_only())
    assert found.recommended == chain(1)
    contenders = confirmation(records, speed_only(), 8).contenders
    assert contenders == (baseline(), chain(4), chain(3), chain(1))
    assert confirmed(records, 8, speeds.__getitem__)[:4] == list(contenders)
    assert weigh(records, speed_only()).recommended == chain(1)


def test_rivals_that_fall_behind_leave_the_rounds_and_a_clear_case_then_ends() -> None:
    speeds = {baseline(): 100.0, chain(2): 150.0, chain(3): 150.0}
    records = [record(n, one, speed, accept=2.0) for n, (one, speed) in enumerate(speeds.items())]
    speeds[chain(2)] = 110.0
    made = confirmed(records, 10, speeds.__getitem__)
    assert made == [baseline(), chain(2), chain(3), chain(3), baseline()]
    assert confirmation(records, speed_only(), 10).settled


def test_what_is_not_told_apart_is_named_in_the_answer() -> None:
    records = [record(0, baseline()), record(1, chain(3), 140.0, accept=2.0), record(2, chain(2), 139.0, accept=2.0)]
    records += [record(3, baseline(), role=Role.CONFIRM), record(4, chain(3), 140.0, accept=2.0, role=Role.CONFIRM)]
    found = summarise(records, speed_only(), Stop("enough"), name="s", engine="e").to_json()
    (tie,) = found["ties"]
    assert (tie["candidate_id"], tie["launches"]) == (chain(2).candidate_id, 1)
    low, high = tie["ratio"][1:]
    told = (
        f"not told apart from the recommended launch, by their speed over its: "
        f"{speed_only().label(chain(2))} ({low:.2f}–{high:.2f})"
    )
    assert found["details"][-2] == told
    assert found["details"][-1].startswith("simpler and not told apart from it, but launched in the search alone")
    assert speed_only().label(chain(2)) in found["details"][-1]
    assert "told apart" not in found["sentence"] + " ".join(found["words"])


def test_many_ties_are_named_in_full_and_all_of_them_in_the_account() -> None:
    at = speed_only()
    tied = [chain(2), chain(2, proto="LL"), chain(3, proto="LL"), chain(1), chain(1, proto="LL")]
    records = [record(0, baseline()), record(1, chain(3), 140.0, accept=2.0)]
    records += [record(n, one, 139.0, accept=2.0) for n, one in enumerate(tied, start=2)]
    records += [record(7, baseline(), role=Role.CONFIRM), record(8, chain(3), 140.0, accept=2.0, role=Role.CONFIRM)]
    found = summarise(records, at, Stop("enough"), name="s", engine="e").to_json()
    assert found["recommended"]["candidate_id"] == chain(3).candidate_id
    line = found["details"][-2]
    assert line.count("EAGLE3 strong") == 3
    assert line.endswith(" and 2 more")
    (account,) = [words for words in found["words"] if "not told apart" in words]
    assert all(f"{at.label(one)} (" in account for one in tied)


def test_a_clear_case_ends_early_and_says_so() -> None:
    fast = chain(3).values[DRAFTER]
    rng = random.Random(2)
    at = longer(40)
    records = played(
        lambda step: (160.0 if step.candidate.values.get(DRAFTER) == fast else 100.0) * (1 + rng.gauss(0, 0.005)),
        at,
        40,
        sampler="random",  # which never says that nothing better is left: the confirmation ends it
    )
    assert len(records) < 40
    end = next_step(records, [], at, Proposer(at, engine(), sampler="random"))
    assert isinstance(end, Stop)
    assert "2 rounds" in end.reason
    found = weigh(records, at)
    assert found.verdict.overall.decision == "speculation"
    assert found.recommended is not None
    assert found.recommended.values[DRAFTER] == fast


def test_a_search_that_ends_by_itself_is_followed_by_its_confirmation_alone() -> None:
    rng = random.Random(1)

    def speed(step: Step) -> float:
        fast = 1.6 if step.candidate.values.get(DRAFTER) == chain(3).values[DRAFTER] else 1.0
        settings = 1.1 if step.candidate.values["env.NCCL_PROTO"] == "LL" else 1.0
        return 100.0 * fast * settings * (1.0 + rng.gauss(0, 0.012))

    records = played(speed, longer(60), 60)
    begun = next(n for n, one in enumerate(records) if one.role is Role.CONFIRM)
    assert len(records) < 60
    # The best baseline is not the reference, so that a check of the machine would be due: it would begin them anew.
    assert {one.role for one in records[begun:]} == {Role.CONFIRM}


def test_a_close_case_uses_all_that_was_kept() -> None:
    rng = random.Random(3)
    at = longer(30)
    records = played(
        lambda step: (101.0 if step.candidate.speculative else 100.0) * (1 + rng.gauss(0, 0.015)),
        at, 99, sampler="random",
    )  # fmt: skip
    assert len(records) == 30
    assert sum(r.role is Role.CONFIRM for r in records) == 8
    overall = weigh(records, at).verdict.overall
    assert overall.decision in ("tie", "undecided")
    assert overall.recommended is not None


def test_the_summary_has_what_the_search_had_seen_beside_what_was_confirmed() -> None:
    records = [record(0, baseline()), record(1, chain(3), 140.0, accept=2.0)]
    records += [record(2, baseline(), role=Role.CONFIRM), record(3, chain(3), 130.0, accept=2.0, role=Role.CONFIRM)]
    found = summarise(records, speed_only(), Stop("enough"), name="s", engine="e").to_json()
    assert abs(found["speedup"]["judged"][0] - 1.3) < 1e-9
    assert abs(found["speedup"]["seen_in_search"] - 1.4) < 1e-9
    assert "confirmed in 1 pair of launches; the search had seen 1.40 ×" in found["details"]


def test_a_confirmation_goes_on_after_a_launch_was_interrupted() -> None:
    records = [record(0, baseline()), record(1, chain(3), 120.0)]
    first = confirmation(records, speed_only(), 4).next
    again = Step(2, Role.CONFIRM, chain(3), "begun before the crash")
    assert first == baseline()
    assert next_step(records, [again], longer(8), Proposer(longer(8), engine())) == again


def test_simpler_is_none_then_chain_then_tree_then_fewer_of_everything() -> None:
    at = speed_only()
    order = [baseline(), baseline("LL"), chain(1), chain(2), chain(2, proto="LL"), chain(3)]
    keys = [simplicity(candidate, at) for candidate in order]
    assert keys == sorted(keys)


def test_one_that_seems_faster_is_named_with_the_launches_that_say_so() -> None:
    records = [record(0, baseline()), record(1, chain(3), 140.0, accept=2.0), record(2, chain(2), 190.0, accept=2.0)]
    for n in range(4):
        one, speed = ((baseline(), 100.0), (chain(3), 140.0))[n % 2]
        records.append(record(3 + n, one, speed, accept=2.0, role=Role.CONFIRM))
    found = summarise(records, speed_only(), Stop("enough"), name="s", engine="e").to_json()
    assert found["recommended"]["candidate_id"] == chain(3).candidate_id
    (tie,) = found["ties"]
    assert tie["ratio"][1] > 1.0
    low, high = tie["ratio"][1:]
    told = f"{low:.2f}–{high:.2f} by 1 launch of the search, where the best of many is partly luck"
    assert found["details"][-1].endswith(f": {speed_only().label(chain(2))} ({told})")


def test_where_the_verdict_is_open_a_tie_of_the_other_branch_has_the_interval_of_the_verdict() -> None:
    speeds = {baseline(): [100.0, 103.0, 99.0], chain(3): [110.0, 104.0, 102.0]}
    records = [record(n, one, speeds[one][n // 2], role=Role.CONFIRM if n > 1 else None)
               for n, one in enumerate([baseline(), chain(3)] * 3)]  # fmt: skip
    found = summarise(records, speed_only(), Stop("enough"), name="s", engine="e").to_json()
    assert found["verdict"] == "undecided"
    ties = {tie["candidate_id"]: tie["ratio"] for tie in found["ties"]}
    assert ties[found["speedup"]["candidate_id"]] == found["speedup"]["judged"]


def test_launches_are_said_to_be_in_turns_where_no_other_lay_between() -> None:
    def told(*made: Candidate) -> str:
        records = [record(0, baseline()), record(1, chain(3), 140.0), record(2, chain(2), 139.0)]
        for one in made:
            speed = {baseline(): 100.0, chain(3): 140.0}.get(one, 110.0)
            records.append(record(len(records), one, speed, role=Role.CONFIRM))
        words = summarise(records, speed_only(), Stop("enough"), name="s", engine="e").to_json()["words"]
        return next(line for line in words if line.startswith("confirmed"))

    assert "in 2 and 2 launches in turns give" in told(baseline(), chain(3), chain(3), baseline())
    assert "in 2 and 2 launches give" in told(baseline(), chain(2), chain(3), chain(3), baseline())
    assert "in 2 and 2 launches give" in told(baseline(), baseline(), chain(3), chain(3))


def test_what_the_sentence_rests_on_is_named_in_its_order() -> None:
    records = [record(0, baseline()), record(1, chain(3), 80.0), record(2, chain(2), 75.0)]
    found = summarise(records, speed_only(), Stop("enough"), name="s", engine="e").to_json()
    assert found["named"] == [baseline().candidate_id, chain(3).candidate_id]
