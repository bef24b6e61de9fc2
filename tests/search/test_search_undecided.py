"""What happens to a question that is still open: more pairs before new candidates, and a sentence with their number."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import random
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from search_samples import baseline, chain, engine, level, record
from test_search_timeline import speed_only

from spectune.analysis.estimate import Estimate
from spectune.analysis.level_notes import too_short
from spectune.errors import SpectuneError
from spectune.search.answer.summary import summarise
from spectune.search.evidence.outcome import weigh
from spectune.search.planning.budget import kept_for_confirmation, used_up
from spectune.search.planning.plan import Stop, next_step
from spectune.search.planning.prospect import prospect
from spectune.search.planning.undecided import command_of, missing_pairs
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.serving import FailureClass
from spectune.space import SearchSpace, find_space_file, load_space

Speed = Callable[[Step], float]


def at(trials: int | None, **budget: float | None) -> SearchSpace:
    space = speed_only()
    return space.with_budget(space.budget.model_copy(update={"trials": trials, **budget}))


def slightly_faster(gain: float, noise: float = 0.015) -> Speed:
    """Speculation gains this much; the noise of a launch depends on its number, so resumed studies see the same."""

    def speed(step: Step) -> float:
        luck = random.Random(step.trial).gauss(0.0, noise)
        return 100.0 * (1.0 + gain * step.candidate.speculative) * math.exp(luck)

    return speed


def launched(records: list[TrialRecord], space: SearchSpace, speed: Speed, most: int = 999) -> list[TrialRecord]:
    """Make the launches that the plan asks for."""
    records, proposer = list(records), Proposer(space, engine(), sampler="tpe")
    while len(records) < most and isinstance(step := next_step(records, [], space, proposer), Step):
        accept = 2.0 if step.candidate.speculative else 1.0
        made = record(step.trial, step.candidate, speed(step), role=step.role, accept=accept)
        records.append(dataclasses.replace(made, look=step.look))
    return records


def told(records: list[TrialRecord], space: SearchSpace, name: str = "small") -> dict[str, Any]:
    found = summarise(records, space, Stop("the budget of launches is used up"), name=name, engine="e").to_json()
    json.dumps(found)
    return found


OPEN = slightly_faster(0.02)


@functools.cache
def left_open() -> list[TrialRecord]:
    """Return the launches of a study that its budget did not decide."""
    return launched([], at(24), OPEN)


def test_an_open_question_ends_with_the_pairs_and_the_command_that_decide_it() -> None:
    records = left_open()
    found = told(records, at(24))
    assert found["verdict"] == "undecided"
    pairs, trials = found["to_decide"]["pairs"], found["to_decide"]["trials"]
    assert pairs == missing_pairs(weigh(records, at(24)))
    assert trials == 24 + 2 * pairs
    assert found["to_decide"]["hours"] == pytest.approx(2 * pairs * 40 / 3600)
    words = f"{pairs} more pairs ({2 * pairs} launches, about {80 * pairs / 60:.0f} min) would decide it"
    last = found["details"][-1]
    assert words in last
    assert last.endswith(f": spectune search small.yaml --trials {trials}")
    assert "% or more shows, and 2.3% was seen; about " in last


def test_the_launches_of_a_raised_budget_go_to_the_pairs_first() -> None:
    records = left_open()
    trials = told(records, at(24))["to_decide"]["trials"]
    more = launched(records, at(trials + 4), OPEN)
    finalists = {r.candidate for r in records[-2:]}
    pairs = list(itertools.takewhile(lambda r: r.role is Role.CONFIRM, more[24:]))
    assert {r.candidate for r in pairs} == finalists
    assert len(pairs) >= 6
    assert weigh(more[: 24 + len(pairs)], at(trials + 4)).verdict.overall.decision == "speculation"
    assert Role.SEARCH in {r.role for r in more[24 + len(pairs) :]}  # decided: the rest goes to new candidates


def test_a_study_that_is_gone_on_with_makes_the_launches_of_one_that_was_not_interrupted() -> None:
    space = at(40)
    whole = launched(left_open(), space, OPEN)
    assert launched(whole[:35], space, OPEN) == whole


def test_launches_remember_for_which_look_they_were_made() -> None:
    space = at(40)  # of which 10 are kept
    records = launched(left_open(), space, OPEN)
    confirmed = [r for r in records if r.role is Role.CONFIRM]
    assert [r.look for r in confirmed] == [1] * 10 + [2] * (len(confirmed) - 10)
    assert len(confirmed) > 10
    assert weigh(records, space).question.looks == 2
    assert weigh(records[: confirmed[9].trial + 1], space).question.looks == 1
    assert [TrialRecord.from_json(r.to_json(), "here").look for r in confirmed] == [r.look for r in confirmed]


def test_a_question_that_noise_drowns_is_not_gone_on_with() -> None:
    drowned = slightly_faster(0.005, noise=0.08)
    records = launched([], at(24), drowned)
    found = told(records, at(24))
    assert found["verdict"] == "undecided"
    assert found["to_decide"]["pairs"] is None
    assert "cannot be decided within reason" in found["details"][-1]
    more = launched(records, at(34), drowned)[24:]  # of which 8 are kept, two more than before
    assert [r.role for r in more[:3]] == [Role.CONFIRM, Role.CONFIRM, Role.SEARCH]


def test_what_is_decided_has_nothing_to_decide() -> None:
    records = launched([], at(24), slightly_faster(0.5))
    assert told(records, at(24))["to_decide"] is None


@pytest.mark.parametrize(("limit", "gpus"), [("hours", 1), ("gpu_hours", 2)])
@pytest.mark.parametrize("trials", [None, 24])
def test_a_limit_of_time_is_raised_where_it_stands(limit: str, gpus: int, trials: int | None) -> None:
    records = left_open()
    space = at(trials, **{limit: 0.01})
    space = space.with_engine(space.engine.model_copy(update={"gpus": gpus}))
    assert used_up(records, space, []) is not None
    words = told(records, space)["to_decide"]["words"]
    raised = re.search(rf": raise budget.{limit} to ([\d.]+) in the space's file, then (spectune .+)", words)
    assert raised is not None, words
    wanted = int(raised[2].rpartition(" --trials ")[2])
    longer = space.with_budget(space.budget.model_copy(update={limit: float(raised[1]), "trials": wanted}))
    more = launched(records, longer, OPEN)
    assert len(more) == wanted, "its advice makes all the launches it says"


def test_a_limit_of_time_that_is_high_enough_is_not_spoken_of() -> None:
    assert "raise" not in told(left_open(), at(24, hours=100.0))["to_decide"]["words"]


def test_a_branch_that_time_left_out_asks_for_time() -> None:
    records = [record(0, baseline())]
    for space, words in (
        (at(None, hours=0.001), ": raise budget.hours in the space's file"),
        (at(1, hours=0.001), ": raise budget.hours in the space's file, then spectune search small.yaml --trials N"),
        (at(1, hours=9.0), ": spectune search small.yaml --trials N"),
    ):
        assert told(records, space)["details"][-1].endswith(f"launches with speculation, too{words}")


def test_without_any_pair_the_budget_is_one_that_keeps_enough_for_them() -> None:
    records = [record(0, baseline()), record(1, chain(3), 103.0, accept=2.0)]
    remedy = told(records, at(2))["to_decide"]
    assert kept_for_confirmation(at(remedy["trials"])) >= 2 * remedy["pairs"]


def test_the_command_names_the_study_and_the_machine_where_they_are_not_the_spaces_own() -> None:
    records = left_open()
    simulated = at(24).with_engine(at(24).engine.simulated("my machine.yaml", virtual=True))
    for space, name, options in (
        (at(24), "mine", "--study mine"),
        (simulated, "small", "--engine simulated --profile 'my machine.yaml' --virtual"),
    ):
        command = told(records, space, name)["to_decide"]["words"].partition(": ")[2]
        assert options in command
        assert shlex.split(command)[:3] == ["spectune", "search", "small.yaml"]
    shipped = dataclasses.replace(at(24), path=load_space(find_space_file("quickstart")).path)
    assert "spectune search quickstart --trials" in told(records, shipped)["details"][-1]
    own = dataclasses.replace(at(24), path=Path("studies/small/space.yaml"))
    assert "the search command of study small, with --trials" in told(records, own)["details"][-1]
    written = "engine: {kind: simulated, profile: p.yaml, virtual: true}"
    named = dataclasses.replace(at(24).with_engine(at(24).engine.simulated("p.yaml", virtual=True)), text=written)
    assert command_of(named, "small") == "spectune search small.yaml"
    other = dataclasses.replace(at(24).with_engine(at(24).engine.simulated("q.yaml", virtual=True)), text=written)
    assert command_of(other, "small") == "spectune search small.yaml --profile q.yaml"


def test_a_shared_study_is_gone_on_with_as_it_was_begun() -> None:
    found = summarise(left_open(), at(24), Stop("enough"), name="s.worker2", engine="e", shared="s").to_json()
    assert "the search command of the shared study s, with its --storage" in found["details"][-1]


def test_the_live_chance_is_that_of_the_verdict_once_pairs_are_launched() -> None:
    space = at(24)
    records = launched([], space, OPEN)
    proposer = Proposer(space, engine())
    first = next(n for n, r in enumerate(records) if r.role is Role.CONFIRM)
    assert prospect(records[:first], space, proposer).pays == proposer.paying(records[:first])
    best = weigh(records, space).verdict.overall.best
    assert best is not None
    assert prospect(records, space, proposer).pays == best.chance
    assert (best.chance > 0.975) == (best.speedup.lo > 1.0)


def test_an_interrupted_study_with_a_baseline_alone_has_measured_no_candidate_yet() -> None:
    found = summarise([record(0, baseline())], speed_only(), None, name="s", engine="e").to_json()
    assert found["sentence"] == "Undecided: no candidate with speculation was measured yet."
    assert found["to_decide"] is None


def test_a_budget_that_ended_with_one_branch_says_how_to_see_the_other() -> None:
    found = told([record(0, baseline())], at(1))
    said = "a larger budget has launches with speculation, too: spectune search small.yaml --trials N"
    assert found["details"] == [said]
    failed = told([record(0, baseline()), record(1, chain(3), failure=FailureClass.CRASH)], at(2))
    assert [line.partition(":")[0] for line in failed["details"]] == ["1 launch failed (crash)"]


def test_a_study_that_is_not_over_has_no_command_in_its_sentence() -> None:
    records = left_open()[:-1]
    found = summarise(records, at(24), None, name="small", engine="e").to_json()
    assert "--trials" not in " ".join(found["details"])


def test_a_level_that_was_too_short_has_no_interval_and_says_so() -> None:
    unknown = Estimate(130.0, -math.inf, math.inf)
    short = record(1, chain(3), 130.0, accept=2.0)
    short = dataclasses.replace(
        short, levels=(dataclasses.replace(level("c1", 130.0, 2.0), decode_speed=unknown), short.levels[1])
    )
    found = told([record(0, baseline()), short], at(24))
    (row,) = [r for r in found["candidates"] if r["num_steps"] == 3 and r["level"] == "c1" and r["class"] == "all"]
    assert row["speedup"] == [pytest.approx(1.3), None, None]
    assert row["verdict"] == "unclear"
    assert "1.300 × the best baseline (not measured long enough)" in " ".join(found["words"])
    assert found["details"][-1] == (
        "c1 was not measured long enough, which more launches do not mend: raise workload.level_time_limit to 40s in a "
        "study of its own"
    )
    assert found["to_decide"]["pairs"] is None


def test_a_short_level_says_what_time_limit_would_do() -> None:
    short = dataclasses.replace(
        level("c1", 130.0), n_requests=2, measured_s=6.0, decode_speed=Estimate(130.0, 40.0, 220.0)
    )
    assert too_short(short, 6.0, 8) == (
        "c1 was not measured long enough: its speeds are known to no better than ±69% "
        "from 2 answers in 6.0 s; a level_time_limit of 24s would give about 8 answers"
    )
    alone = dataclasses.replace(short, n_requests=1, decode_speed=Estimate(130.0, -math.inf, math.inf))
    assert "its speeds are not known how exactly from 1 answer in" in (too_short(alone, 6.0, 8) or "")
    assert too_short(level("c1", 130.0), 6.0, 8) is None


@pytest.mark.parametrize("look", [0, -1, 10**6, "2", None])
def test_a_look_that_cannot_be_is_damage(look: object) -> None:
    content = record(0, baseline()).to_json() | {"look": look}
    with pytest.raises(SpectuneError, match="damaged"):
        TrialRecord.from_json(content, "result.json")
