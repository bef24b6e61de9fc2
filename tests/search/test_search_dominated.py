"""Launches that are ended because another one is better in everything that counts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_samples import SPACE, baseline, chain, level, record, space
from search_simulated import Silent, write

from spectune.bench.course import Highest
from spectune.engines.open import open_engine
from spectune.search import Status, StudyFolder, open_study, run_study
from spectune.search.launch.dominated import Dominated
from spectune.search.storage.records import TrialRecord
from spectune.space import load_space

BOTH = space(SPACE.replace("minimize: ttft_p95_ms", "maximize: output_throughput"))  # decode_speed@c1 and this @c8


def given_up(
    records: list[TrialRecord], *, c1: float | None, highest: float, at: str = "c8", text: str | None = None
) -> bool:
    measured = [] if c1 is None else [level("c1", c1)]
    asked = BOTH if text is None else space(text)
    return Dominated(asked, records).by_anyone(measured, at)(Highest(highest, highest))


INCUMBENT = record(1, chain(3), 200.0)  # 200 at c1, and 90 at c8


def test_a_launch_that_is_worse_in_everything_is_given_up() -> None:
    assert given_up([INCUMBENT], c1=150.0, highest=60.0)
    assert not given_up([], c1=150.0, highest=60.0)


@pytest.mark.parametrize(("c1", "highest"), [(150.0, 95.0), (250.0, 60.0), (196.0, 60.0), (150.0, 88.0)])
def test_one_that_may_still_be_better_or_as_good_in_something_is_not(c1: float, highest: float) -> None:
    assert not given_up([INCUMBENT], c1=c1, highest=highest)


def test_two_launches_that_are_each_better_in_something_do_not_add_up() -> None:
    quick, busy = record(1, chain(2), 400.0), record(2, chain(4), 100.0)
    assert not given_up([busy], c1=150.0, highest=40.0)
    assert given_up([busy, quick], c1=150.0, highest=40.0)


def test_nothing_is_given_up_for_a_level_whose_successors_count_too() -> None:
    assert not given_up([INCUMBENT], c1=None, highest=1.0, at="c1")
    assert not given_up([INCUMBENT], c1=150.0, highest=1.0, text=SPACE)  # a latency has no bound before the end


def test_a_launch_that_breaks_a_bound_or_was_not_as_asked_is_nobodys_better() -> None:
    assert not given_up([record(1, chain(3), 200.0, ttft_ms=900.0)], c1=150.0, highest=60.0)


@given(speed=st.floats(10, 1000), share=st.floats(0.96, 3.0))
def test_launch_noise_alone_gives_nothing_up(speed: float, share: float) -> None:
    same = record(1, chain(3), speed)
    assert not given_up([same, baseline_of(speed)], c1=speed * share, highest=0.45 * speed * share)


def baseline_of(speed: float) -> TrialRecord:
    return record(0, baseline(), speed)


def test_a_study_says_which_levels_it_ended_early_and_keeps_their_figures(tmp_path: Path) -> None:
    workload = {
        "prompts": "builtin:tiny", "chat_template": False, "output_tokens": 48, "precision": 0.002,
        "levels": [{"concurrency": 1}, {"concurrency": 4}], "level_time_limit": "20s",
    }  # fmt: skip
    objectives = [{"maximize": "output_throughput", "level": "c4"}]
    draft = {"weights_gb": 1, "step_ms": {"graph": 0.8, "eager": 1.6}, "token_ms": 0.01}  # long chains lose
    file = write(tmp_path, workload=workload, objectives=objectives, budget={"trials": 6}, profile={"draft": draft})
    asked, folder = load_space(file), StudyFolder(tmp_path / "studies/early")
    folder.root.mkdir(parents=True)
    engine = open_engine(asked)
    open_study(folder, asked, engine)
    records = asyncio.run(run_study(folder, asked, engine, Silent(), sampler="random")).records
    early = [one for one in records if any("ended early" in note for note in one.notes)]
    assert early
    for one in early:
        assert one.status is Status.OK
        assert one.candidate.speculative
        assert [level.level for level in one.levels] == ["c1", "c4"]
        assert max(_throughput(other) for other in records) > 1.03 * _throughput(one)
    assert all(not any("ended early" in note for note in one.notes) for one in records if not one.candidate.speculative)


def _throughput(one: TrialRecord) -> float:
    level = one.level("c4")
    assert level is not None
    return level.output_throughput.est
