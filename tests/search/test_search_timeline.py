"""What the study clock does to the launches that are compared."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest
from search_samples import baseline, chain, record, space

from spectune.answer import launch_origin
from spectune.export.header import header
from spectune.export.launch import Launch
from spectune.machine import Difference
from spectune.search.answer.summary import summarise
from spectune.search.evidence.outcome import weigh
from spectune.search.evidence.place_line import study_hours
from spectune.search.evidence.timeline import causes, timeline
from spectune.search.planning.plan import Stop
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import SearchSpace

SPEED = space().text.replace("objectives: [{maximize: decode_speed, level: c1}, {minimize: ttft_p95_ms, level: c8}]",
                             "objectives: [{maximize: decode_speed, level: c1}]")  # fmt: skip


def speed_only() -> SearchSpace:
    return space(SPEED)


def study(factors: list[float], *, noise: float = 0.0) -> list[TrialRecord]:
    """Baseline and candidate in turns, the candidate 1.2 times as fast, on a machine that changes by these factors."""
    rng = random.Random(1)
    records = []
    for number, factor in enumerate(factors):
        candidate, role = (chain(3), Role.CONFIRM) if number % 2 else (baseline(), Role.CONFIRM)
        speed = 100.0 * (1.2 if number % 2 else 1.0) * factor * (1.0 + rng.gauss(0, noise))
        records.append(record(number, candidate, speed, role=role, accept=2.0 if number % 2 else 1.0))
    return records


def test_the_clock_counts_launches_not_breaks() -> None:
    records = [record(0, baseline(), total_s=100.0), record(1, chain(1), total_s=50.0)]
    assert study_hours(records) == {0: pytest.approx(50 / 3600), 1: pytest.approx(125 / 3600)}


def test_a_drift_is_taken_out_of_every_figure() -> None:
    records = study([0.99**n for n in range(12)])
    line = timeline(records, speed_only())
    assert line.places[0].drift is not None
    assert line.places[0].drift.shown
    speeds = [r.levels[0].decode_speed.est for r in line.launches if not r.candidate.speculative]
    assert speeds == pytest.approx([speeds[0]] * 6, rel=1e-4)
    assert line.launches[-1].levels[0].decode_speed.est == records[-1].levels[0].decode_speed.est
    for launch in line.launches:
        at = launch.levels[0]
        assert at.cycle_ms.est * at.decode_speed.est == pytest.approx(1000 * at.accept_length.est)
    assert weigh(records, speed_only()).verdict.overall.comparisons[0].speedup.est == pytest.approx(1.2, rel=1e-4)


def test_what_is_not_known_of_the_drift_widens_the_more_the_older_a_launch_is() -> None:
    records = study([0.99**n for n in range(12)], noise=0.002)
    line = timeline(records, speed_only())
    widths = [launch.levels[0].decode_speed.relative_half_width for launch in line.launches]
    measured = [launch.levels[0].decode_speed.relative_half_width for launch in records]
    assert widths[-1] == pytest.approx(measured[-1])
    assert all(wide > narrow for wide, narrow in zip(widths[:-1], measured[:-1], strict=True))
    assert widths[0] > widths[6]


def test_only_what_came_after_a_jump_is_compared() -> None:
    records = study([1.0] * 6 + [0.8] * 4, noise=0.002)
    line = timeline(records, speed_only())
    assert [(jump.before, jump.after) for jump in line.jumps] == [(5, 6)]
    assert [launch.trial for launch in line.launches] == [6, 7, 8, 9]
    assert line.before[0].levels[0].decode_speed.est == pytest.approx(80.0, rel=0.02)
    assert {r.trial for r in weigh(records, speed_only()).records} == {6, 7, 8, 9}


def test_nothing_is_recommended_where_all_baselines_were_launched_before_the_jump() -> None:
    records = [one for one in study([1.0] * 6 + [0.8] * 6, noise=0.002) if one.trial < 6 or one.candidate.speculative]
    assert timeline(records, speed_only()).jumps
    evidence = weigh(records, speed_only())
    assert evidence.recommended is None
    assert evidence.no_answer is not None
    assert evidence.no_answer.startswith("no launch without speculation was made since the machine jumped")
    summary = summarise(records, speed_only(), Stop("the budget is used up"), name="s", engine="SGLang").to_json()
    assert summary["recommended"] is None
    assert evidence.no_answer in " ".join([summary["sentence"], *summary["words"]])


def test_a_jump_is_told_with_what_the_fingerprint_says_of_it() -> None:
    records = study([1.0] * 6 + [0.8] * 4, noise=0.002)
    old = Difference("gpus.a.link", 16, 8, True)
    new = Difference("gpus.a.power_limit_w", 700, 500, True)
    records = [dataclasses.replace(r, environment_changes=(old,) if r.trial < 6 else (old, new)) for r in records]
    (jump,) = timeline(records, speed_only()).jumps
    assert causes(jump, records) == [str(new)]
    summary = summarise(records, speed_only(), Stop("enough"), name="s", engine="SGLang").to_json()
    assert summary["jumps"][0]["causes"] == [str(new)]
    assert any("power_limit_w" in words for words in summary["words"])


def test_launches_of_the_search_say_nothing_of_the_machine() -> None:
    lucky = [record(n, chain(3), 150.0 - 9.0 * n, role=Role.SEARCH) for n in range(6)]
    line = timeline([record(6, baseline()), *lucky], speed_only())
    assert line.places[0].drift is None
    assert line.jumps == ()
    assert "nothing was launched twice" in line.noise.source


@pytest.mark.parametrize("factor", [0.99, 1.0])
def test_exported_files_say_that_a_drift_was_taken_out_of_their_figures(factor: float) -> None:
    records = study([factor**n for n in range(12)], noise=0.002)
    told = summarise(records, speed_only(), Stop("enough"), name="s", engine="e")
    origin = launch_origin(StudyFolder(Path("studies/s")), speed_only(), told)
    top = "\n".join(header(records[-1], Launch.of(records[-1].command), origin))
    assert told.drift.corrected is (factor < 1.0)
    assert ("3, 5, 7, 9, 11, corrected for the machine's drift, with 95 % intervals" in top) is (factor < 1.0)
    assert "measured, speeds as the geometric mean over trials 1, 3" in top
