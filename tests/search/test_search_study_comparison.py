from dataclasses import replace

import pytest
from search_samples import SPACE, baseline, chain, record, space

from spectune.analysis.change_words import change_words, changed
from spectune.cli.comparing import _conclusions
from spectune.search import Role, weigh
from spectune.search.answer.study_changes import study_changes
from spectune.search.answer.study_comparison import Side, compare_studies

AFTER_DRAFTER = SPACE.replace("org/strong, org/weak", "org/newer, org/weak")
MACHINE = {"schema": 2, "engine": "SGLang 0.5.22", "gpus": {"driver": "550"}, "host": {"cpu": "EPYC"}, "software": {}}


def study(name, speeds, text=SPACE, repeats=4):
    """Launches by candidate, each repeated side by side."""
    loaded = space(text)
    records, trial = [], 0
    for turn in range(repeats):
        for candidate, speed in speeds.items():
            accept = 2.4 if candidate.speculative else 1.0
            records.append(record(trial, candidate, speed * (1 + 0.001 * turn), role=Role.CONFIRM, accept=accept))
            trial += 1
    return Side(name, loaded, weigh(records, loaded))


def rows(before, after):
    compared = compare_studies(before, after)
    return compared, {
        (pair.roles[0], pair.after): {level.level: level for level in pair.levels} for pair in compared.pairs
    }


def test_a_faster_machine_is_no_merit_of_a_candidate():
    compared, found = rows(
        study("old", {baseline(): 100.0, chain(3): 150.0}), study("new", {baseline(): 110.0, chain(3): 165.0})
    )
    assert compared.machine == baseline()
    base, fast = found["best baseline", baseline()]["c1"], found["recommended", chain(3)]["c1"]
    assert change_words(base.change).startswith("faster by 10 % (")
    assert base.own is None
    assert change_words(fast.change).startswith("faster by 10 % (")
    assert fast.own is not None
    assert not changed(fast.own)
    assert (fast.before.est, fast.after.est) == pytest.approx((150.0, 165.0), rel=0.01)
    assert fast.before.lo < 150.0 < fast.before.hi


def test_a_slower_candidate_on_the_same_machine_is_its_own_change():
    _, found = rows(
        study("old", {baseline(): 100.0, chain(3): 150.0}), study("new", {baseline(): 100.0, chain(3): 135.0})
    )
    fast = found["recommended", chain(3)]["c8"]
    assert fast.own is not None
    assert change_words(fast.own).startswith("slower by 10 %")
    assert fast.accept_lengths == pytest.approx((2.4, 2.4))


def test_backwards_everything_is_the_inverse():
    old, new = study("old", {baseline(): 100.0, chain(3): 150.0}), study("new", {baseline(): 104.0, chain(3): 160.0})
    there, back = compare_studies(old, new), compare_studies(new, old)
    for one, other in zip(there.pairs, back.pairs, strict=True):
        for a, b in zip(one.levels, other.levels, strict=True):
            assert a.change.judged.est == pytest.approx(1 / b.change.judged.est)
            assert a.change.judged.lo == pytest.approx(1 / b.change.judged.hi)


def test_a_new_drafter_is_paired_with_the_one_it_replaces():
    old = study("old", {baseline(): 100.0, chain(3): 120.0, chain(2): 110.0})
    new = study("new", {baseline(): 100.0, chain(3, "org/newer"): 160.0, chain(2): 110.0}, AFTER_DRAFTER)
    compared, found = rows(old, new)
    pair = next(pair for pair in compared.pairs if "recommended" in pair.roles)
    assert (pair.before, pair.after) == (chain(3), chain(3, "org/newer"))
    assert ("in both", chain(2)) in found
    # the same two, were they not the recommendations
    worse = study("new", {baseline(): 100.0, chain(3, "org/newer"): 90.0, chain(2): 130.0}, AFTER_DRAFTER)
    _, found = rows(old, worse)
    assert change_words(found["same but for the drafter", chain(3, "org/newer")]["c1"].change).startswith(
        "slower by 25"
    )


def test_two_candidates_that_could_both_be_meant_are_not_paired():
    old = study("old", {baseline(): 100.0, chain(3): 120.0, chain(3, "org/weak"): 90.0})
    new = study("new", {baseline(): 100.0, chain(3, "org/newer"): 125.0}, AFTER_DRAFTER)
    assert all("same but for the drafter" not in pair.roles for pair in compare_studies(old, new).pairs)


def test_without_a_baseline_in_both_no_machine_is_told_apart():
    old, new = study("old", {baseline("LL"): 100.0, chain(3): 150.0}), study("new", {baseline(): 90.0, chain(3): 150.0})
    compared, found = rows(old, new)
    assert compared.machine is None
    assert found["recommended", chain(3)]["c1"].own is None


def test_levels_that_only_one_has_are_left_out():
    other = SPACE.replace(
        "levels: [{concurrency: 1}, {concurrency: 8}]", "levels: [{concurrency: 8}, {concurrency: 1}]"
    )
    old, new = study("old", {baseline(): 100.0}), study("new", {baseline(): 100.0}, other)
    assert compare_studies(old, new).shared_levels == ("c1", "c8")
    missing = replace(new, space=space(SPACE.replace("{concurrency: 1}", "{concurrency: 2}").replace("c1", "c2")))
    assert compare_studies(old, missing).shared_levels == ("c8",)


def test_many_comparisons_are_allowed_for():
    few = {baseline(): 100.0, chain(3): 150.0, chain(2): 120.0}
    many = {**few, **{chain(s, d): 90.0 + s for s in (1, 4) for d in ("org/strong", "org/weak")}}
    ends = []
    for speeds in (few, many):
        _, found = rows(study("old", speeds), study("new", speeds))
        ratio = found["in both", chain(2)]["c1"].change.judged
        ends.append(ratio.hi - ratio.lo)
    assert ends[0] < ends[1]


def test_what_changed_is_listed_what_matters_first():
    after = {**MACHINE, "engine": "SGLang 0.5.23", "gpus": {"driver": "560"}, "host": {"cpu": "EPYC", "cores": 3}}
    now = space(AFTER_DRAFTER.replace("builtin:tiny", "builtin:mixed").replace("trials: 12", "trials: 50"))
    found = {one.field: one for one in study_changes(space(), now, MACHINE, after)}
    assert str(found["engine"]) == "engine: SGLang 0.5.22 → SGLang 0.5.23 (another engine)"
    assert found["drafters"].after == ["org/newer", "org/weak"]
    assert found["gpus.driver"].matters
    assert "other speeds are expected" in found["space.workload.prompts"].why
    assert "space.name" not in found
    assert not found["space.budget.trials"].matters
    assert study_changes(space(), space(), MACHINE, MACHINE) == []


def test_a_study_without_an_environment_still_compares():
    assert [one.field for one in study_changes(space(), space(), {}, MACHINE)] == ["engine", "environment.json"]


def test_opposite_verdicts_are_said_to_differ():
    one, other = (study(name, {baseline(): 100.0, chain(3): fast}) for name, fast in (("a", 150.0), ("b", 70.0)))
    told = list(_conclusions(one, other, compare_studies(one, other)))
    assert "their verdicts differ: a says speculate, b do not speculate" in told
    same = list(_conclusions(one, one, compare_studies(one, one)))
    assert not any("verdicts" in line for line in same)
