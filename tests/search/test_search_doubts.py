"""What speaks against the figures of a verdict stands beside it, and is said once for all who show it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from search_samples import SPACE, baseline, chain, level, record, space

from spectune.analysis.break_even import impossible
from spectune.analysis.estimate import Estimate
from spectune.search import TrialRecord
from spectune.search.answer.summary import summarise
from spectune.search.planning.plan import Stop
from spectune.search.storage.steps import Role
from spectune.search.why import break_even_of

ONE_GOAL = SPACE.replace(", {minimize: ttft_p95_ms, level: c8}", "")


def loud() -> list[TrialRecord]:
    """The best baseline was launched twice, once on a machine that had no time for it."""
    slow = [record(1, baseline(), 110.3), record(2, chain(3), 389.6, accept=3.2)]
    again = [record(3, chain(3), 380.0, role=Role.CONFIRM, accept=3.2), record(4, baseline(), 109.0, role=Role.CONFIRM)]
    return [record(0, baseline(), 341.4), *slow, *again]


def told(records: list[TrialRecord], text: str = ONE_GOAL) -> dict[str, Any]:
    return summarise(
        records, space(text), Stop("the budget of launches is used up"), name="small", engine="e"
    ).to_json()


def test_a_break_even_that_cannot_be_stands_first_and_in_the_same_words_everywhere() -> None:
    records = loud()
    found = told(records)
    row = next(r for r in found["candidates"] if r["num_steps"] == 3 and r["level"] == "c1" and r["class"] == "all")
    words = impossible(row["break_even"][0])
    assert words is not None
    assert found["details"][0] == f"at c1 {words}"
    assert words in break_even_of(records, space(ONE_GOAL)).words


def test_launches_that_scatter_are_named_beside_the_verdict() -> None:
    found = told([record(0, baseline(), 341.4), record(1, baseline(), 110.3), record(2, chain(3), 389.6, accept=2.0)])
    (scatter,) = (line for line in found["details"] if line.startswith("launches of one configuration differ by "))
    assert scatter.endswith("where 1 to 3% is usual; 2 launches of no speculation: 341.4 and 110.3 tok/s at c1")
    assert "the fastest is" in found["sentence"]
    steady = told([record(0, baseline(), 100.0), record(1, baseline(), 101.0), record(2, chain(3), 90.0, accept=2.0)])
    assert not any("configuration differ" in line or "impossible" in line for line in steady["details"])
    assert "closest is" in steady["sentence"]


def test_a_figure_that_only_a_factor_would_show_is_told_as_one() -> None:
    found = told([record(0, baseline(), 341.4), record(1, baseline(), 110.3), record(2, chain(3), 389.6, accept=2.0)])
    assert found["verdict"] == "undecided"
    assert "that scatter so much only a factor of " in found["to_decide"]["words"]


@pytest.mark.parametrize("decided", [True, False], ids=["by the level", "beside it"])
def test_a_level_that_is_too_short_is_not_mended_by_more_launches(*, decided: bool) -> None:
    short = dataclasses.replace(
        level("c1" if decided else "c8", 102.0, 2.0), decode_speed=Estimate(102.0, -math.inf, math.inf)
    )
    base, tried = record(0, baseline(), 100.0), record(1, chain(3), 102.0, accept=2.0)
    levels = (short, tried.levels[1]) if decided else (tried.levels[0], short)
    found = told([base, dataclasses.replace(tried, levels=levels)])
    assert found["verdict"] == "undecided"
    remedy = (
        f"{short.level} was not measured long enough, which more launches do not mend: raise workload.level_time_limit"
    )
    assert remedy in found["to_decide"]["words"]
    assert ("--trials" in found["to_decide"]["words"]) is not decided


def test_the_break_even_of_a_study_begins_with_its_verdict() -> None:
    records = [record(0, baseline(), 100.0, ttft_ms=100.0), record(1, chain(3), 120.0, accept=2.0, ttft_ms=400.0)]
    both = break_even_of(records, space())
    assert both.words[0] == f"the study: {told(records, SPACE)['sentence']}"
    assert any(line.startswith("by the speed of one request at c1 alone, ") for line in both.words)
    alone = break_even_of(records, space(ONE_GOAL))
    assert not any("alone, " in line for line in alone.words)
