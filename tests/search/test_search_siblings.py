"""What a launch shows only beside others of its study."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from search_samples import baseline, chain, record
from search_simulated import SPACE, Silent, write

from spectune.engines.open import open_engine
from spectune.engines.protocol import Effective
from spectune.search import StudyFolder, TrialRecord, open_study, run_study
from spectune.search.evidence.siblings import remarks
from spectune.serving import FailureClass
from spectune.space import Candidate, load_space


def parallel(candidate: Candidate, dp: int) -> Candidate:
    return Candidate.of({**candidate.values, "dp-size": dp, "enable-dp-attention": dp > 1})


def test_acceptance_that_another_parallelism_lowers() -> None:
    """sglang#16274: accept length 2.35 with TP4, 1.48 with TP4 and DP4 of the same drafter."""
    before = record(3, parallel(chain(3), 1), accept=2.35)
    (said,) = remarks(record(5, parallel(chain(3), 4), accept=1.48), [before])
    assert said.startswith("accept length 1.48 at c1 and 2.35 in trial 3, which drafts the same (dp-size 4 against 1")
    assert "may be broken" in said
    (said,) = remarks(replace(before, trial=6), [record(5, parallel(chain(3), 4), accept=1.48)])
    assert "accept length 2.35 at c1 and 1.48 in trial 5" in said


@pytest.mark.parametrize(
    "other",
    [
        record(1, parallel(chain(3), 4), accept=2.0),
        record(1, chain(2), accept=1.2),
        record(1, chain(3, drafter="org/weak"), accept=1.2),
        record(1, chain(3), accept=1.2),
        record(1, baseline()),
        record(1, parallel(chain(3), 4), accept=1.2, failure=FailureClass.CRASH),
    ],
)
def test_other_drafts_small_differences_and_failures_say_nothing(other: TrialRecord) -> None:
    assert remarks(record(2, chain(3), accept=2.3), [other]) == []


def test_speculation_that_takes_the_kv_cache() -> None:
    """vllm#55533: with speculation only 3 sequences of a hybrid model can be scheduled."""
    room = replace(record(0, baseline()), effective=Effective(kv_tokens=100_000))
    (said,) = remarks(replace(record(1, chain(1)), effective=Effective(kv_tokens=3_000)), [room])
    assert "room for 3000 tokens in the KV cache, and without it there is room for 100000 (trial 0)" in said
    assert remarks(replace(record(1, chain(1)), effective=Effective(kv_tokens=90_000)), [room]) == []
    assert remarks(replace(record(1, chain(1, proto="LL")), effective=Effective(kv_tokens=3_000)), [room]) == []
    assert remarks(record(1, chain(1)), [room]) == []


def test_a_study_says_it_and_keeps_it(tmp_path: Path) -> None:
    """vllm#55533 on the simulated engine: the drafter's weights take most of what the cache had."""
    draft: dict[str, Any] = {"weights_gb": 60, "step_ms": {"graph": 0.2, "eager": 0.4}, "token_ms": 0.01}
    file = write(tmp_path, profile={"draft": draft}, budget={"trials": 2}, engine=SPACE["engine"])
    space, watcher = load_space(file), Silent()
    folder = StudyFolder(tmp_path / "studies/sim")
    folder.root.mkdir(parents=True)
    engine = open_engine(space)
    open_study(folder, space, engine)
    records = asyncio.run(run_study(folder, space, engine, watcher)).records
    assert [len(r.notes) for r in records] == [0, 1]
    assert records[1].notes[0] in watcher.lines
    kept = json.loads((folder.root / "trials/0001/result.json").read_text())
    assert kept["notes"] == list(records[1].notes)
