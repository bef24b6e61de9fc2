"""Open-loop levels through a whole launch, on the simulated engine's server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from search_simulated import SPACE, chain, write
from test_search_simulated import launch

from spectune.engines.notes import queueing
from spectune.engines.open import open_engine
from spectune.errors import InputProblems
from spectune.search import Status
from spectune.space import load_space


def workload(**changed: Any) -> dict[str, Any]:
    made: dict[str, Any] = SPACE["workload"] | changed
    return made


def served(args: dict[str, int]) -> dict[str, Any]:
    made: dict[str, Any] = SPACE["engine"] | {"virtual": False, "args": SPACE["engine"]["args"] | args}
    return made


def test_a_launch_is_measured_at_a_rate_and_along_a_trace(tmp_path: Path) -> None:
    entries = [{"prompt": "word " * (5 + i), "timestamp_ms": 40 * i} for i in range(40)]
    entries.append({"prompt": "word " * 40_000, "timestamp_ms": 1600})
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    levels = [{"rate": 20}, {"trace": 2}]
    file = write(
        tmp_path, workload=workload(prompts="asked.jsonl", levels=levels), engine=served({"context-length": 8192})
    )
    record = launch(file, chain(3))
    assert record.status is Status.OK, record.failure
    assert [level.level for level in record.levels] == ["r20", "t2"]
    for level in record.levels:
        assert (level.offered_rate or 0) > 0
        assert level.accept_length.est > 1.5
    folder = tmp_path / "studies/one/trials"
    for name in ("level-r20.jsonl", "level-t2.jsonl"):
        (path,) = folder.glob(f"*/{name}")
        records = [json.loads(line) for line in path.read_text().splitlines()]
        assert all(one["due_s"] is not None and one["error"] is None for one in records)
        assert max(one["prompt_tokens"] for one in records) < 40_000


def test_virtual_time_refuses_open_loops_with_their_lines(tmp_path: Path) -> None:
    space = load_space(write(tmp_path, workload=workload(levels=[{"concurrency": 1}, {"rate": 2.5}])))
    with pytest.raises(InputProblems, match=r"sim\.yaml:\d+: virtual time serves a fixed concurrency, not r2\.5"):
        open_engine(space)


@pytest.mark.parametrize(
    ("levels", "args", "words"),
    [
        ([{"rate": 100}], {"max-running-requests": 64}, "r100 may have 240 requests under way"),
        ([{"concurrency": 65}], {"max-running-requests": 64}, "c65 keeps 65 requests in flight"),
        ([{"trace": 1}], {}, "t1 follows a trace"),
        ([{"rate": 100}, {"concurrency": 64}], {"max-running-requests": 240}, None),
        ([{"rate": 100}], {}, None),
    ],
)
def test_levels_whose_requests_would_queue_are_said(
    tmp_path: Path, levels: list[dict[str, float]], args: dict[str, int], words: str | None
) -> None:
    space = load_space(write(tmp_path, workload=workload(levels=levels), engine=served(args)))
    said = queueing(space, open_engine(space))
    assert [words in note for note in said] == [True] if words else not said
