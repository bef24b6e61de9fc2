"""What a study is expected to cost, and whether speculation will pay, before and while it runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from guided_world import TEXT, engine, launch, search, space

from spectune.analysis.estimate import Estimate
from spectune.cli.progress_words import left_words
from spectune.engines.open import open_engine
from spectune.machine import CoresUsed, Others
from spectune.search.evidence.noise import scatter_of
from spectune.search.evidence.speeds import together
from spectune.search.planning.prospect import Progress, Prospect, progress, prospect
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord
from spectune.space import SearchSpace


def expected(records: list[TrialRecord], at: SearchSpace | None = None, sampler: str = "guided") -> Prospect:
    at = at or space()
    return prospect(records, at, Proposer(at, engine(at), sampler=sampler))


def test_before_the_start_it_rests_on_guesses_and_says_which() -> None:
    at = space(TEXT.replace("trials: 30", "trials: 80"))
    found = expected([], at)
    assert (found.launches, found.most) == (61, 80)  # a baseline, 40 of search, 20 of confirmation
    assert found.hours == pytest.approx(61 * (0.25 * 1200 + 2 * 20) / 3600)
    assert found.gpu_hours == found.hours  # one GPU
    assert found.rests_on.startswith("guesses, since nothing was launched: a launch taken to need 5.7 min")
    assert found.rests_on.endswith("; whether speculation pays is not known before the first launches")


def test_whether_speculation_pays_is_open_until_both_branches_were_measured() -> None:
    records = list(search(space(), 3))
    assert [record.candidate.speculative for record in records] == [False, True, True]
    pays = [expected(records[:made]).pays for made in range(4)]
    assert [chance is None for chance in pays] == [True, True, False, False]
    assert expected(records[1:]).pays is None
    assert "pays" not in expected(records[:1]).words


def test_what_is_known_to_scatter_leaves_the_chance_open() -> None:
    def wide(record: TrialRecord, width: float) -> TrialRecord:
        levels = [
            replace(level, output_throughput=Estimate(now.est, now.est * (1 - width), now.est * (1 + width)))
            for level in record.levels
            for now in (level.output_throughput,)
        ]
        return replace(record, levels=tuple(levels))

    records = list(search(space(), 6))
    beside = {"c1": Others(CoresUsed(2, 0.4, 1.6, 0.5))}
    quiet, loud, busy = (
        expected(told).pays or 0.0
        for told in (
            records,
            [wide(record, 5.0) for record in records],
            [replace(record, others=beside) for record in records],
        )
    )
    assert quiet > 0.99 > loud > 0.5, "the figures are the same"
    assert quiet >= busy > 0.5
    assert scatter_of(records, together(space())) < 0.03
    assert scatter_of([replace(record, others=beside) for record in records], together(space())) > 0.2


def test_the_start_of_a_simulated_machine_is_what_its_profile_says() -> None:
    at = space()
    at = at.with_engine(at.engine.simulated("kimi-k2.5-pcie", virtual=True))
    found = prospect([], at, Proposer(at, open_engine(at)))
    assert found.hours == pytest.approx(found.launches * (3.0 + 2 * 20) / 3600)
    assert "(3 s to start, and level_time_limit for every level)" in found.rests_on


def test_after_launches_it_rests_on_them() -> None:
    records = list(search(space(), 8))
    found = expected(records)
    assert found.rests_on == "the 8 launches so far"
    assert 8 < found.launches <= 30
    assert found.hours == pytest.approx(found.launches * 32 / 3600)
    assert found.pays is not None
    assert found.pays > 0.99  # the strong drafter is twice as fast
    assert found.words.endswith("speculation pays with a chance of 100%")


def test_a_drafter_that_is_never_right_does_not_pay() -> None:
    at = space()
    weak = [c for c in Proposer(at, engine(at)).all() if c.drafter == "org/weak" and c.eagle_topk == 1]
    records = [launch(0, Proposer(at, engine(at)).baseline())]
    records += [launch(n, candidate) for n, candidate in enumerate(weak[:3], start=1)]
    pays = expected(records).pays
    assert pays is not None
    assert pays < 1.0


def test_other_samplers_use_their_budget_and_believe_nothing() -> None:
    found = expected(list(search(space(), 4)), sampler="tpe")
    assert (found.launches, found.pays) == (30, None)


@pytest.mark.parametrize("budget", [{"hours": 0.1}, {"gpu_hours": 0.1}])
def test_time_bounds_the_launches(budget: dict[str, float]) -> None:
    at = space()
    at = at.with_budget(at.budget.model_copy(update={"trials": None, **budget}))
    found = expected(list(search(at, 4)), at)
    assert found.most == 11  # of 32 s
    assert found.launches <= found.most


@pytest.mark.parametrize(("trials", "words"), [(None, "about 1 launch"), (30, "about 1 launch done (30 at most)")])
def test_the_first_launch_is_made_however_little_time_there_is(trials: int | None, words: str) -> None:
    at = space()
    found = expected([], at.with_budget(at.budget.model_copy(update={"trials": trials, "hours": 0.01})))
    assert (found.launches, found.most) == (1, trials), "how many the time allows is not known yet"
    assert left_words(progress([], found), 0.0).startswith(f"0 of {words}")


def test_progress_is_one_line_with_the_time_left() -> None:
    cost = Prospect(launches=18, most=40, hours=3.4, gpu_hours=27.2, pays=0.93, rests_on="")
    at = Progress(done=7, planned=18, spent_s=4800.0, left_s=6600.0, expected=cost)
    words = (
        "7 of about 18 launches done (40 at most), about 1 h 50 min left, about 27 GPU-hours in all, "
        "speculation pays: 93%"
    )
    assert left_words(at, 0.0) == words
    assert "GPU-hours" not in left_words(replace(at, expected=replace(cost, virtual=True)), 0.0)
    assert "27 GPU-hours of the simulated machine, in virtual time" in replace(cost, virtual=True).words
    records = list(search(space(), 3))
    assert progress([], cost).left_s is None
    assert "time left is known after the first" in left_words(progress([], cost), 0.0)
    assert "left" not in left_words(replace(at, left_s=None), 0.0), "nobody here has seen a launch yet"
    assert progress(records, cost).left_s == pytest.approx(15 * 32.0)
    assert progress(records, cost, reader_pace_s=2.0).left_s == pytest.approx(30.0)
    assert progress(records, cost, at_once=4).left_s == pytest.approx(4 * 32.0), "15 launches, four at once"
    assert progress(records, cost, reader_pace_s=2.0, at_once=4).left_s == pytest.approx(30.0), "theirs together"


@pytest.mark.parametrize(
    ("launches", "most", "words"),
    [
        (10, 10, "10 launches, all that the budget allows, about 3.4 hours"),
        (1, 1, "1 launch, all that the budget allows, about 3.4 hours"),
        (18, 40, "about 18 launches (the budget allows 40), about 3.4 hours"),
        (18, None, "about 18 launches, about 3.4 hours"),
    ],
)
def test_a_plan_says_which_number_is_the_budget(launches: int, most: int | None, words: str) -> None:
    assert Prospect(launches=launches, most=most, hours=3.4, gpu_hours=0.0, pays=None, rests_on="").words == words
