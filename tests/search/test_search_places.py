"""Launches made in several places are compared through each place's own baselines."""

from __future__ import annotations

import random

import pytest
from search_samples import baseline, chain, record
from test_search_timeline import speed_only

from spectune.bench.course import Highest
from spectune.search.answer.summary import summarise
from spectune.search.evidence.noise import noise_of
from spectune.search.evidence.outcome import weigh
from spectune.search.evidence.place_line import study_hours
from spectune.search.evidence.speeds import together
from spectune.search.evidence.timeline import timeline
from spectune.search.launch.dominated import may_end
from spectune.search.planning.plan import Stop
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step

SLOW = 0.9


def pairs(rounds: int, noise: float = 0.0, *, drift: float = 1.0) -> list[TrialRecord]:
    """Baseline and a candidate 1.2 times as fast, in turns in two places; the second is slower and may drift."""
    rng, records = random.Random(1), []
    for number in range(4 * rounds):
        place, candidate = "ab"[number // 2 % 2], chain(3) if number % 2 else baseline()
        factor = SLOW * drift**number if place == "b" else 1.0
        speed = 100.0 * (1.2 if number % 2 else 1.0) * factor * (1.0 + rng.gauss(0, noise))
        accept = 2.0 if number % 2 else 1.0
        records.append(record(number, candidate, speed, role=Role.CONFIRM, accept=accept, place=place))
    return records


def test_a_slower_place_does_not_shift_speedups() -> None:
    records = pairs(3)
    best = weigh(records, speed_only()).verdict.overall.best
    assert best is not None
    assert best.speedup.est == pytest.approx(1.2)
    alike = [record(r.trial, r.candidate, r.levels[0].decode_speed.est / (SLOW if r.place == "b" else 1.0),
                    role=r.role, accept=r.levels[0].accept_length.est, place=r.place) for r in records]  # fmt: skip
    other = weigh(alike, speed_only()).verdict.overall.best
    assert other is not None
    assert best.error == pytest.approx(other.error, rel=1e-6)


def test_all_figures_are_brought_to_the_place_of_the_first_baseline() -> None:
    line = timeline(pairs(6), speed_only())
    assert [one.place for one in line.places] == ["a", "b"]
    assert line.factors["b"].speed.est == pytest.approx(SLOW, rel=0.01)
    assert line.factors["b"].speed.lo < SLOW < line.factors["b"].speed.hi
    for launch in line.launches:
        wanted = 120.0 if launch.candidate.speculative else 100.0
        assert launch.levels[0].decode_speed.est == pytest.approx(wanted, rel=0.01)


def test_what_places_differ_by_is_no_noise_between_launches() -> None:
    assert noise_of(pairs(6, 0.01), together(speed_only())).relative_sd < 0.02


def test_one_launch_of_the_reference_is_not_taken_for_more_than_it_is() -> None:
    line = timeline([record(0, baseline(), 100.0, place="a"), record(1, baseline(), 80.0, place="b")], speed_only())
    assert 0.8 < line.factors["b"].speed.est < 0.95


def test_the_best_of_the_search_says_nothing_of_a_place() -> None:
    lucky = [record(1, chain(3), 130.0, place="a"), record(2, chain(3), 110.0, role=Role.CONFIRM, place="b")]
    line = timeline([record(0, baseline(), place="a"), *lucky], speed_only())
    assert line.factors["b"].log == 0.0


def test_a_place_drifts_and_jumps_by_itself() -> None:
    drifting = timeline(pairs(6, drift=0.995), speed_only())
    assert not drifting.at("a").corrected
    assert drifting.at("b").corrected
    speeds = [r.levels[0].decode_speed.est for r in drifting.launches if not r.candidate.speculative]
    assert speeds == pytest.approx([100.0] * 12, rel=0.02)
    records = [
        record(r.trial, r.candidate, r.levels[0].decode_speed.est * (0.8 if r.place == "b" and r.trial > 10 else 1.0),
               role=r.role, accept=r.levels[0].accept_length.est, place=r.place)
        for r in pairs(6, 0.002)
    ]  # fmt: skip
    line = timeline(records, speed_only())
    assert [(jump.before, jump.after) for jump in line.jumps] == [(10, 11)]
    assert {r.trial for r in line.launches} == {r.trial for r in records if r.place == "a" or r.trial > 10}
    assert weigh(records, speed_only()).verdict.overall.comparisons[0].speedup.est == pytest.approx(1.2, rel=0.01)


def test_every_place_has_a_clock() -> None:
    records = [record(0, baseline(), total_s=100.0, place="a"), record(1, baseline(), total_s=60.0, place="b")]
    records.append(record(2, chain(1), total_s=100.0, place="a"))
    assert study_hours(records) == pytest.approx({0: 50 / 3600, 1: 30 / 3600, 2: 150 / 3600})


def test_unequal_shares_of_a_place_widen_a_comparison() -> None:
    apart = [r for r in pairs(6) if (r.place == "a") is r.candidate.speculative or r.trial < 8]
    found, equal = (weigh(records, speed_only()).verdict.overall.best for records in (apart, pairs(6)))
    assert found is not None
    assert equal is not None
    assert found.speedup.relative_half_width > 1.05 * equal.speedup.relative_half_width
    assert found.speedup.est == pytest.approx(1.2, rel=0.02)


def test_a_launch_in_a_slow_place_is_not_given_up_for_the_place() -> None:
    records = [*pairs(6), record(30, chain(4), 120.0, place="a")]
    for place, ends in (("a", True), ("b", False)):
        dominated = may_end(Step(31, Role.SEARCH, chain(2), "new", place), speed_only(), records)
        assert dominated is not None
        assert dominated.by_anyone([], "c1")(Highest(109.0, 109.0)) is ends


def test_the_summary_tells_of_every_place() -> None:
    found = summarise(pairs(4, 0.005), speed_only(), Stop("enough"), name="s", engine="e").to_json()
    assert [(one["place"], one["launches"]) for one in found["places"]] == [("a", 8), ("b", 8)]
    assert found["places"][0]["speed"] == [1.0, 1.0, 1.0]
    assert found["places"][1]["speed"][0] == pytest.approx(SLOW, rel=0.02)
    assert any(words.startswith("b: ") and "× as fast as a" in words for words in found["words"])
