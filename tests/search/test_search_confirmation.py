"""The finalists in turns with the best baseline."""

from __future__ import annotations

import random

from search_samples import baseline, chain, engine, record
from test_search_baselines import played
from test_search_timeline import speed_only

from spectune.search.confirmation import confirmation
from spectune.search.outcome import weigh
from spectune.search.plan import Stop, next_step
from spectune.search.proposals import Proposer
from spectune.search.speeds import simplicity
from spectune.search.steps import Role, Step
from spectune.search.summary import summarise
from spectune.space import DRAFTER, SearchSpace


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
    records = [record(0, baseline()), record(1, chain(3), 120.0), record(2, chain(2), 119.0)]
    assert confirmation(records, speed_only(), 4).contenders == (baseline(), chain(3))


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
    found = summarise(records, speed_only(), Stop("enough"), name="s", engine="e")
    assert abs(found["speedup"]["judged"][0] - 1.3) < 1e-9
    assert abs(found["speedup"]["seen_in_search"] - 1.4) < 1e-9
    assert "the search had seen 1.40 ×" in found["sentence"]


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
