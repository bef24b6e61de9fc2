"""Launches with forced accept lengths: they obey, the arithmetic predicts them, and nothing scores or exports them."""

import asyncio
import json
from pathlib import Path

import pytest
from search_simulated import PROFILE, SPACE, Silent, chain, launch, write

from spectune.answer import deliver
from spectune.engines.open import open_engine
from spectune.errors import SpectuneError
from spectune.search import Status, StudyFolder, open_study
from spectune.search.forced_runs import at_closed_loops, run_forced
from spectune.space import Candidate, load_space

PLAIN = Candidate.of({"speculative-algorithm": "none"})
FORCED = {"SGLANG_SIMULATE_ACC_LEN": "3"}


class Noting(Silent):
    """Keeps why launches were made."""

    def __init__(self):
        super().__init__()
        self.launched = []

    def launching(self, step):
        self.launched.append(step.why)


def a_study(folder: Path, profile=None, **space) -> tuple[StudyFolder, Path]:
    """A study of two finished launches."""
    file = write(folder, profile=profile, **space)
    space = load_space(file)
    study = StudyFolder(folder / "studies/one")
    open_study(study, space, open_engine(space))
    for number, candidate in enumerate((PLAIN, chain(3))):
        study.write_result(launch(file, candidate, number=number, root=study.root))
    return study, file


def run(study: StudyFolder, file: Path, candidate: Candidate):
    return asyncio.run(run_forced(study, load_space(file), study.records(), candidate, Silent()))


def test_forced_launches_do_what_the_arithmetic_predicts(tmp_path):
    study, file = a_study(tmp_path)
    before = {path: path.read_bytes() for path in (study.root / "trials").rglob("*") if path.is_file()}
    found = run(study, file, chain(3))
    assert [(one.level, one.forced) for one in found.levels] == [
        (name, s) for s in (1, 2, 3, 4) for name in ("c1", "c4")
    ]
    assert all(one.obeyed for one in found.levels)
    assert found.worst < 0.03
    assert found.apart < 0.03
    kept = json.loads((study.root / "what-if" / chain(3).candidate_id / "what-if.json").read_text())
    assert kept["schema"] == 1
    assert [one["forced"] for one in kept["levels"]] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert {path: path.read_bytes() for path in (study.root / "trials").rglob("*") if path.is_file()} == before
    assert len(study.records()) == 2


def test_what_is_slow_in_the_first_answers_of_a_launch_is_over_before_its_cycles_are_compared(tmp_path):
    slow = {"noise": {"first_requests_slow": {"requests": 4, "factor": 3.0}}}
    study, file = a_study(
        tmp_path, slow, workload=SPACE["workload"] | {"output_tokens": 256, "levels": [{"concurrency": 1}]}
    )
    found = run(study, file, chain(3))
    assert found.worst < 0.01
    assert found.apart < 0.01


def test_levels_at_which_the_load_follows_the_speed_are_left_out(tmp_path):
    engine, workload = SPACE["engine"] | {"virtual": False}, SPACE["workload"]
    levels = [{"concurrency": 1}, {"rate": 5}, {"concurrency": 4}]
    mixed = load_space(write(tmp_path, engine=engine, workload=workload | {"levels": levels}))
    closed, left_out = at_closed_loops(mixed)
    assert (closed.workload.level_names, left_out) == (("c1", "c4"), ["r5"])
    rates = load_space(write(tmp_path, engine=engine, workload=workload | {"levels": [{"rate": 5}]}))
    with pytest.raises(SpectuneError, match="no level to compare at; at a rate or a trace"):
        at_closed_loops(rates)


def test_more_rounds_are_launched_in_alternating_order_and_averaged(tmp_path):
    study, file = a_study(tmp_path)
    watcher = Noting()
    found = asyncio.run(
        run_forced(study, load_space(file), study.records(), chain(1), watcher, rounds=2)
    )  # S + 1 = 2 accept lengths
    plain, one, two = "as it is", "made to accept 1 token a verify", "made to accept 2 tokens a verify"
    assert [why.removeprefix("what if: ") for why in watcher.launched] == [plain, one, two, plain, two, one, plain]
    assert [(level.level, level.forced) for level in found.levels] == [("c1", 1), ("c4", 1), ("c1", 2), ("c4", 2)]
    assert found.worst < 0.03


def test_what_was_forced_is_neither_scored_nor_exported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study, file = a_study(tmp_path)
    run(study, file, chain(3))
    summary = deliver(study, load_space(file), study.records(), None).summary
    assert sorted(trial for row in summary.candidates for trial in row.trials) == [0, 0, 1, 1]
    exported = [path.read_text() for path in study.exports.iterdir()]
    assert exported
    assert not any("SIMULATE_ACC" in text for text in exported)


def test_a_launch_whose_workers_have_the_variable_is_suspect_wherever_it_came_from(tmp_path):
    file = write(tmp_path, engine={**SPACE["engine"], "env": FORCED})
    # Canaries would end it first: forced answers are not the model's.
    record = launch(file, chain(3))
    assert record.status in {Status.SUSPECT, Status.FAILED}
    assert "SGLANG_SIMULATE_ACC_LEN" in {mismatch.field for mismatch in record.suspect}


def test_prompts_that_are_not_the_study_s_are_refused(tmp_path):
    asked = tmp_path / "asked.jsonl"
    asked.write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    study, file = a_study(tmp_path, workload=SPACE["workload"] | {"prompts": asked.name})
    asked.write_text('{"prompt": "one"}\n{"prompt": "another"}\n')
    with pytest.raises(SpectuneError, match=r"the prompts asked\.jsonl are not those"):
        run(study, file, chain(3))
    assert not (study.root / "what-if").exists()


def test_an_algorithm_that_cannot_be_forced_is_refused(tmp_path):
    study, file = a_study(tmp_path)
    ngram = Candidate.of({"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": 4})
    with pytest.raises(SpectuneError, match="not for NGRAM"):
        run(study, file, ngram)
    assert not (study.root / "what-if").exists()


def test_a_launch_that_fails_is_said_with_its_log(tmp_path):
    study, _ = a_study(tmp_path)
    dying = tmp_path / "dying"
    dying.mkdir()
    file = write(dying, profile=PROFILE | {"faults": [{"when": {"speculation": True}, "at": "load", "kind": "oom"}]})
    with pytest.raises(SpectuneError, match=r"the launch as it is failed: .*server\.log"):
        run(study, file, chain(3))
    assert len(study.records()) == 2
