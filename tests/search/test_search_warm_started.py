"""`--warm-start` from end to end, in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forked import spectune
from search_samples import SPACE as REAL
from search_samples import baseline, record
from search_samples import space as real_space
from search_simulated import SPACE, write

from spectune.errors import SpectuneError
from spectune.search import StudyFolder, WarmStart, lend, refuse_lender
from spectune.search.proposing.warm_start import WARM_START
from spectune.space import load_space


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study, and one with another space that begins with what it learned."""
    folder = tmp_path_factory.mktemp("taught")
    write(folder)
    assert spectune("search", "sim.yaml", "--study", "before", cwd=folder).returncode == 0
    search = {**SPACE["search"], "speculative-num-steps": {"from": 2, "to": 6}}
    write(folder, search=search)
    done = spectune("search", "sim.yaml", "--study", "after", "--warm-start", "before", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "stderr").write_text(done.stderr)
    return folder


def summary(folder: Path, study: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "studies" / study / "summary.json").read_text())
    return content


def test_it_is_said_and_recorded(taught: Path) -> None:
    said = (taught / "stderr").read_text()
    assert "warm start from 6 launches of study before: another study; accepted drafts count 100%" in said
    assert "it rests on the 6 launches of study before" in said
    assert "as study before suggests" in said
    lent = summary(taught, "after")["warm_start"]
    assert (lent["study"], lent["launches"]) == ("before", 6)
    assert summary(taught, "before")["warm_start"] is None
    assert (taught / "studies/after/resolved.yaml").read_text().startswith("# warm start from 6 launches")
    assert load_space(taught / "studies/after/resolved.yaml").name == "sim"


def test_what_it_lends_counts_for_nothing_but_beliefs(taught: Path) -> None:
    found = summary(taught, "after")
    records = StudyFolder(taught / "studies/after").records()
    trials = {trial for row in found["candidates"] for trial in row["trials"]}
    assert trials <= {one.trial for one in records}
    assert len(records) == 6
    assert {row["trial"] for row in found["baselines"]} <= trials
    assert records[1].candidate.speculative


def test_the_study_goes_on_without_the_one_that_taught_it(taught: Path) -> None:
    kept = WarmStart.of(StudyFolder(taught / "studies/after"))
    assert kept is not None
    assert all(item.discount is not None for item in kept.evidence)
    done = spectune("search", "sim.yaml", "--study", "after", "--trials", "7", cwd=taught)
    assert done.returncode == 0, done.stderr


def test_it_is_taken_at_the_beginning_or_not_at_all(taught: Path) -> None:
    done = spectune("search", "sim.yaml", "--study", "after", "--warm-start", "after", cwd=taught)
    assert done.returncode == 2
    assert "the study after has begun, from before" in done.stderr


def test_the_plan_of_a_dry_run_rests_on_it(taught: Path) -> None:
    done = spectune("search", "sim.yaml", "--warm-start", "before", "--dry-run", "--json", cwd=taught)
    found = json.loads(done.stdout)
    assert found["warm_start"]["study"] == "before"
    assert found["plan"]["rests_on"].startswith("the 6 launches of study before")
    assert 0.0 <= found["plan"]["speculation_pays"] <= 1.0
    assert found["plan"]["launches"] <= found["plan"]["launches_at_most"] == 6


def test_bad_teachers_are_refused_before_anything_begins(taught: Path) -> None:
    for words, said in (
        (("--warm-start", "nobody"), "there is no study nobody"),
        (("--warm-start", "before", "--sampler", "tpe"), "only the sampler guided learns from an earlier study"),
    ):
        done = spectune("search", "sim.yaml", "--study", "third", *words, cwd=taught)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert not (taught / "studies/third").exists()


def test_measured_and_simulated_studies_do_not_teach_each_other(taught: Path, tmp_path: Path) -> None:
    simulated = StudyFolder(taught / "studies/before")
    real = StudyFolder(tmp_path / "small")
    real.begin(real_space().text, real_space().resolved_yaml(), {}, {})
    real.write_result(record(0, baseline()))
    with pytest.raises(SpectuneError, match=r"was simulated, and this one is measured: .* name a measured study"):
        refuse_lender(simulated, real_space())
    with pytest.raises(SpectuneError, match="that study was measured, and this one is simulated"):
        refuse_lender(real, simulated.space())
    with pytest.raises(SpectuneError, match="it measured the model org/model, and this is org/else"):
        refuse_lender(real, real_space(REAL.replace("org/model", "org/else")))


def test_another_profile_is_another_machine(taught: Path, tmp_path: Path) -> None:
    from spectune.engines.open import open_engine

    at = load_space(write(tmp_path, profile={"host_ms": 5.0}))
    lent = lend(StudyFolder(taught / "studies/before"), at, open_engine(at))
    assert "it ran on another machine, so only its acceptance is used" in lent.why
    assert all(item.targets is None for item in lent.evidence)


LENT = {"values": {"a": 1}, "targets": None, "levels": [], "failure": None}


@pytest.mark.parametrize(
    "evidence",
    [
        None, [3],
        [LENT | {"discount": {"counted": 1, "noise": [], "risk": 1}}],
        [LENT | {"targets": ["x"]}],
    ],
)  # fmt: skip
def test_a_damaged_file_is_named(evidence: object, tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "small")
    content = json.dumps({"study": "x", "why": "y", "evidence": evidence})
    folder.begin(real_space().text, real_space().resolved_yaml(), {}, {WARM_START: content})
    with pytest.raises(SpectuneError, match=r"warm_start\.json is damaged"):
        WarmStart.of(folder)
