"""A study that is gone on with under another space: migrated where its launches still count, refused otherwise."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from search_samples import SPACE, baseline, chain, engine, record, space

from spectune.errors import SpectuneError
from spectune.search import Role, StudyFolder, TrialRecord, refuse_another
from spectune.search.planning.plan import next_step
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.book import LocalBook
from spectune.search.storage.folder import OUTSIDE
from spectune.search.storage.migration import changes, migrate
from spectune.search.storage.steps import Step
from spectune.space import SearchSpace


def begun(root: Path, records: list[TrialRecord]) -> StudyFolder:
    folder = StudyFolder(root / "small")
    at = space()
    folder.begin(at.text, "# kept\n" + at.resolved_yaml(), {}, {})
    for one in records:
        folder.write_result(one)
    folder.ledger.write_text("of the old space")
    return folder


def other(**changed: Any) -> SearchSpace:
    data = yaml.safe_load(SPACE)
    for path, value in changed.items():
        section, _, key = path.partition("__")
        if key:
            data[section][key] = value
        else:
            data[section] = value
    return space(yaml.safe_dump(data, sort_keys=False))


RECORDS = [record(0, baseline()), record(1, chain(4)), record(2, chain(2, "org/weak")), record(3, baseline("LL"))]


def test_nothing_changed_but_the_budget(tmp_path: Path) -> None:
    folder = begun(tmp_path, RECORDS)
    (told,) = migrate(folder, space(trials=50))
    assert re.fullmatch(r"the budget is another one than the study began with: budget\.trials: \d+ → 50", told)
    assert migrate(folder, space()) == []
    assert folder.ledger.exists()


def test_added_values_keep_every_launch(tmp_path: Path) -> None:
    folder = begun(tmp_path, RECORDS)
    wider = other(**{"search__speculative-num-steps": {"from": 1, "to": 6}})
    refuse_another(folder, wider)
    assert migrate(folder, wider) == ["the search space has changed: search.speculative-num-steps: 1 to 4 → 1 to 6"]
    assert len(folder.records()) == 4
    assert changes(folder.space(), wider) == []
    assert folder.resolved_file.read_text().startswith("# kept\n")
    assert not folder.ledger.exists()  # made anew
    assert "to: 4" in (folder.root / "resolved-until-0004.yaml").read_text()
    assert migrate(folder, wider) == []


def test_launches_with_a_value_that_was_taken_away_are_set_aside(tmp_path: Path) -> None:
    folder = begun(tmp_path, RECORDS)
    fewer = other(**{"search__speculative-draft-model-path": "org/strong", "search__speculative-num-draft-tokens": [2]})
    told = migrate(folder, fewer)
    assert "search.speculative-draft-model-path: " in told[0]
    assert told[1].startswith("launches 0002 lie outside of it now")
    assert [one.trial for one in folder.records()] == [0, 1, 3]  # the N of a chain is none that anybody chose
    assert (folder.root / OUTSIDE / "0002" / "result.json").exists()


def test_launches_that_were_set_aside_keep_their_numbers_and_come_back(tmp_path: Path) -> None:
    folder = begun(tmp_path, [*RECORDS, replace(record(4, chain(3)), launch_index=7)])
    fewer = other(**{"search__speculative-draft-model-path": "org/strong", "search__speculative-num-steps": [1, 2, 4]})
    migrate(folder, fewer)
    standing = asyncio.run(LocalBook(folder, fewer).read())
    assert {one.trial for one in standing.set_aside} == {2, 4}
    step = next_step(
        standing.records, standing.interrupted, fewer, Proposer(fewer, engine()), set_aside=standing.set_aside
    )  # fmt: skip
    assert isinstance(step, Step)
    assert (step.trial, standing.launch_index) == (5, 8)
    for name in ("0002", "0004"):
        (folder.root / OUTSIDE / name).rename(folder.root / "trials" / name)
    assert [one.trial for one in folder.records()] == [0, 1, 2, 3, 4]
    (folder.root / "trials" / "0001").rename(folder.root / "0001")
    again = asyncio.run(LocalBook(folder, space()).read())
    step = next_step(again.records, again.interrupted, space(), Proposer(space(), engine()))
    assert isinstance(step, Step)
    assert (step.trial, again.launch_index) == (1, 8)  # a number of nobody is given again, its place in time is not


def test_a_damaged_launch_that_was_set_aside_is_no_hindrance(tmp_path: Path) -> None:
    folder = begun(tmp_path, RECORDS)
    migrate(folder, other(**{"search__speculative-draft-model-path": "org/strong"}))
    (folder.root / OUTSIDE / "0002" / "result.json").write_text("{")
    assert folder.set_aside() == []


def test_forbidden_launches_are_set_aside_too(tmp_path: Path) -> None:
    folder = begun(tmp_path, RECORDS)
    told = migrate(folder, other(forbid=[{"env.NCCL_PROTO": "LL"}]))
    assert told[1].startswith("launches 0003-baseline lie outside")
    assert [one.role for one in folder.records()] == [Role.BASELINE, Role.SEARCH, Role.SEARCH]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"engine__args": {"model-path": "org/model", "device": "cpu"}}, "attention-backend: intel_amx → nothing"),
        ({"workload__levels": [{"concurrency": 4}], "objectives": [], "constraints": []}, "workload.levels: "),
        ({"engine__parallel": 2}, "engine.parallel: 1 → 2 (a launch is as fast as its neighbours let it be)"),
        ({"search__page-size": [1, 16]}, "search.page-size: nothing → [1, 16]"),
        ({"objectives": [{"maximize": "decode_speed", "level": "c1"}]}, "objectives: "),
    ],
)  # fmt: skip
def test_what_changes_the_launches_or_their_measurement_is_refused(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    folder = begun(tmp_path, RECORDS)
    with pytest.raises(SpectuneError) as caught:
        refuse_another(folder, other(**changed))
    assert said in str(caught.value)
    assert "--study NAME, and let it learn with --warm-start small" in str(caught.value)


def test_a_study_of_another_engine_is_not_offered_as_a_teacher(tmp_path: Path) -> None:
    folder = begun(tmp_path, RECORDS)
    at = space()
    with pytest.raises(SpectuneError) as caught:
        refuse_another(folder, at.with_engine(at.engine.simulated(None, virtual=True)))
    assert "engine.kind: sglang → simulated" in str(caught.value)
    assert "--warm-start" not in str(caught.value)


def test_changes_are_told_key_by_key() -> None:
    found = changes(space(), other(engine__startup_timeout="9m", targets={"decode_speed": [100]}))
    assert [(change.key, change.harmless) for change in found] == [
        ("engine.startup_timeout", True), ("targets.decode_speed", True),
    ]  # fmt: skip
    assert json.dumps(found[1].after) == "[100.0]"
