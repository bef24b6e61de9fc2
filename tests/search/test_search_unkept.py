"""A constraint that no launch keeps, or none of a branch, is named wherever the study's answer is told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from search_samples import SPACE, baseline, chain, engine, record, space
from search_simulated import write
from typer.testing import CliRunner, Result

from spectune.cli.app import app
from spectune.errors import SpectuneError
from spectune.search import Role, TrialRecord, summarise, weigh
from spectune.search.planning.plan import Stop, next_step
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.steps import Step
from spectune.space import SearchSpace

TOLD = "keeps ttft_p95_ms ≤ 500 at c8: the best reached"


def told(records: list[TrialRecord], of: SearchSpace | None = None) -> dict:
    return summarise(records, of or space(), None, name="small", engine="SGLang 0.5.23").to_json()


def launches(plain_ms: float, chain_ms: float, speed: float = 150.0) -> list[TrialRecord]:
    return [
        record(0, baseline(), ttft_ms=plain_ms), record(1, chain(3), speed, accept=2.0, ttft_ms=chain_ms),
        record(2, baseline(), role=Role.CONFIRM, ttft_ms=plain_ms),
        record(3, chain(3), speed, accept=2.0, role=Role.CONFIRM, ttft_ms=chain_ms),
    ]  # fmt: skip


def bounded(text: str) -> SearchSpace:
    return space(SPACE.replace("{ttft_p95_ms: {max: 500}, level: c8}", text))


def test_what_no_launch_keeps_is_named_with_the_best_that_was_reached() -> None:
    found = told(launches(700.0, 612.5))
    clause = f"no launch {TOLD} 612.5 ms ({space().label(chain(3))}); raise it or widen the search"
    assert (found["sentence"], found["no_answer"]) == (f"No answer: {clause}.", clause)
    assert found["words"][0] == f"objectives together: undecided, {clause}"
    assert sum(clause in text for text in found["words"]) == 1
    assert (found["recommended"], found["pareto"], found["speedup"]) == (None, [], None)
    assert found["in_question"]["why"].endswith(clause)
    assert weigh(launches(700.0, 612.5), space()).chance is None


@pytest.mark.parametrize(
    ("records", "whose", "best", "trial"),
    [
        (launches(700.0, 400.0), "without", 700, 3),
        (launches(400.0, 700.0), "with", 700, 2),
        (launches(400.0, 700.0)[:2], "with", 700, 0),
    ],
    ids=["only speculation keeps it", "only no speculation does", "nothing was relaunched"],
)
def test_one_branch_alone_keeps_the_constraints(records: list[TrialRecord], whose: str, best: int, trial: int) -> None:
    found = told(records)
    assert found["sentence"].startswith(f"Not compared: no launch {whose} speculation {TOLD} {best} ms (")
    assert "no baseline was measured" not in " ".join(found["words"])
    assert "no speculative candidate was measured" not in " ".join(found["words"])
    assert found["no_answer"] is None
    assert found["recommended"]["trial"] == trial
    choice = f"of those that keep what the space asks for the choice is {found['recommended']['label']}"
    assert found["details"][0] == choice


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        (
            "{decode_speed: {min: 200}, level: c1}",
            "no launch keeps decode_speed ≥ 200 at c1: the best reached 150 tok/s (CHAIN); lower it or widen the",
        ),
        (
            "{ttft_p95_ms: {max: 80}, level: c8}, {decode_speed: {min: 200}, level: c1}",
            "no launch keeps ttft_p95_ms ≤ 80 at c8: the best reached 100 ms (no speculation), nor",
        ),
        (
            "{ttft_p95_ms: {max: 110}, level: c8}, {decode_speed: {min: 140}, level: c1}",
            "no launch keeps ttft_p95_ms ≤ 110 at c8 and decode_speed ≥ 140 at c1 together: the closest reached 120",
        ),
    ],
    ids=["a least value", "two", "each is kept, both are not"],
)
def test_every_kind_of_bound_has_its_words(constraints: str, said: str) -> None:
    found = told(launches(100.0, 120.0), bounded(constraints))["no_answer"]
    assert found.startswith(said.replace("CHAIN", space().label(chain(3))))
    assert found.endswith("or widen the search")


def test_constraints_that_both_branches_keep_are_not_spoken_of() -> None:
    found = told(launches(100.0, 120.0))
    assert found["unkept"] is found["no_answer"] is None
    assert "keeps" not in found["sentence"]
    assert told([record(0, baseline())])["unkept"] is None


def ended(ttft_ms: Callable[[int], float], of: SearchSpace) -> tuple[list[TrialRecord], str]:
    """Make the launches of a study; those with speculation wait for their first token as long as their number says."""
    records: list[TrialRecord] = []
    proposer = Proposer(of, engine(), sampler="random")
    while isinstance(step := next_step(records, [], of, proposer), Step):
        waits = ttft_ms(step.trial) if step.candidate.speculative else 100.0
        records.append(record(step.trial, step.candidate, 150.0, accept=2.0, role=step.role, ttft_ms=waits))
    assert isinstance(step, Stop)
    return records, step.reason


def test_while_no_speculation_keeps_the_constraints_nothing_is_confirmed_and_the_search_goes_on() -> None:
    records, reason = ended(lambda _: 900.0, space())
    assert (len(records), reason) == (12, "the budget of 12 launches is used up")
    assert Role.CONFIRM not in {one.role for one in records}


def test_a_candidate_that_keeps_them_at_last_is_confirmed_with_what_is_left() -> None:
    records, _ = ended(lambda trial: 900.0 if trial < 10 else 100.0, space(trials=14))
    kept = next(one.candidate for one in records if one.trial >= 10 and one.candidate.speculative)
    assert [one.candidate for one in records if one.role is Role.CONFIRM] == [baseline(), kept, kept]


def test_a_search_that_has_launched_everything_says_what_nothing_keeps() -> None:
    at = space(SPACE.replace("from: 1, to: 4", "from: 1, to: 1").replace("[org/strong, org/weak]", "[org/strong]"))
    records, reason = ended(lambda _: 900.0, at)
    assert Role.CONFIRM not in {one.role for one in records}
    assert reason.startswith(f"every legal candidate has been launched, and no launch with speculation {TOLD} 900 ms (")


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("unkept")
    objectives = [{"maximize": "decode_speed", "level": "c1"}]
    write(folder, objectives=objectives, constraints=[{"ttft_p95_ms": {"max": 0.001}, "level": "c4"}])
    with contextlib.chdir(folder):
        return folder, CliRunner().invoke(app, ["search", "sim.yaml"])


def test_search_report_export_and_breakeven_say_the_same(studied: tuple[Path, Result]) -> None:
    folder, searched = studied
    said = "no launch keeps ttft_p95_ms ≤ 0.001 at c4: the best reached"
    assert searched.exit_code == 1, searched.output
    assert f"No answer: {said}" in searched.stdout
    stop = json.loads((folder / "studies/sim/summary.json").read_text())["stop"]["reason"]
    assert "finalists" not in stop
    assert "speculation pays: 0%" not in searched.output
    with contextlib.chdir(folder):
        shown = CliRunner().invoke(app, ["report", "sim", "--json"])
        assert json.loads(shown.stdout)["no_answer"].startswith(said)
        assert said in CliRunner().invoke(app, ["breakeven", "sim"]).stdout
        assert "no answer" in CliRunner().invoke(app, ["studies"]).stdout
        for words in (["export", "sim"], ["export", "sim", "--pick", "latency"]):
            error = CliRunner().invoke(app, words).exception
            assert isinstance(error, SpectuneError)
            assert said in str(error)
    page = (folder / "reports/sim.html").read_text()
    assert "<title>No answer" in page
    assert f"Nothing can be recommended: {said}" in page
    assert "against the best launch without, at c1" not in page
