"""`docs/summary.md` against the summaries themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from search_samples import baseline, chain, record, space

from spectune.search.answer.summary import summarise
from spectune.search.planning.plan import Stop
from spectune.serving import FailureClass

ROOT = Path(__file__).parents[2]
FREE = {"recommended.env", "effects[].together", "failures"}
"""Their keys are names of variables, parameters and classes of failures."""


def fields(value: Any, path: str = "") -> Iterator[str]:
    """Yield every field with its path, those below a list once for each entry."""
    if isinstance(value, dict) and path not in FREE:
        for name, inner in value.items():
            where = f"{path}.{name}" if path else name
            yield where
            yield from fields(inner, where)
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, f"{path}[]")


def documented() -> list[str]:
    return re.findall(r"^\| `([^`]+)` \| .+ \|$", (ROOT / "docs/summary.md").read_text("utf-8"), re.MULTILINE)


def example() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "studies/example/summary.json").read_text("utf-8"))
    return found


def test_every_field_of_the_example_is_explained_once() -> None:
    told = documented()
    assert len(set(told)) == len(told)
    assert [field for field in dict.fromkeys(fields(example())) if field not in told] == []


def test_nothing_is_explained_that_is_not_there() -> None:
    """What the example has nothing of is in an open study with failures, or belongs to what neither has."""
    failed = [record(n, chain(n, proto="LL"), failure=FailureClass.NCCL) for n in (2, 3, 4)]
    launches = [record(0, baseline()), record(1, chain(3), 100.5, accept=2.0), *failed]
    open_ = summarise(launches, space(), Stop("enough"), name="s", engine="SGLang 0.5.23").to_json()
    assert open_["to_decide"] is not None
    assert open_["exclusions"]
    found = {*fields(example()), *fields(open_)}
    assert set(fields(open_)) <= set(documented())
    nothing_of = ("jumps[].", "outside_graphs.", "warm_start.")
    assert [field for field in documented() if field not in found and not field.startswith(nothing_of)] == []
