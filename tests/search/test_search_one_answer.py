"""What is said of one figure is the same wherever it is said."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from search_samples import SPACE, baseline, chain, record, space

from spectune.analysis.comparison import Comparison
from spectune.analysis.estimate import Estimate
from spectune.analysis.strata import least
from spectune.analysis.verdict import TOO_SHORT
from spectune.calibration.noise import fit_noise
from spectune.export import Launch
from spectune.export.header import Origin, header
from spectune.search import Role, TrialRecord, summarise, weigh
from spectune.search.answer.in_question import in_question
from spectune.search.answer.objective_words import as_measured, gain, goal
from spectune.search.answer.study_comparison import Side, compare_studies
from spectune.search.evidence.figures import measured
from spectune.search.why import break_even_of
from spectune.space import Candidate, SearchSpace

LATENCY = SPACE.replace(", {minimize: ttft_p95_ms, level: c8}", "").replace("constraints:", "#")


def small() -> SearchSpace:
    return space(LATENCY)


def summary(records: list[TrialRecord], of: SearchSpace | None = None) -> dict:
    return summarise(records, of or small(), None, name="small", engine="SGLang 0.5.23").to_json()


def in_turns(fast: float = 150.0, other: float = 140.0) -> list[TrialRecord]:
    """A search, and the finalist beside the baseline twice."""
    made = [record(0, baseline()), record(1, chain(3), fast, accept=2.0), record(2, chain(2), other, accept=1.8)]
    confirm = [(baseline(), 99.0, 1.0), (chain(3), fast, 2.0), (chain(3), fast * 1.05, 2.2), (baseline(), 103.0, 1.0)]
    return made + [
        record(3 + n, of, speed, accept=length, role=Role.CONFIRM) for n, (of, speed, length) in enumerate(confirm)
    ]


def with_classes(one: TrialRecord, prose: float, contexts: dict[str, float]) -> TrialRecord:
    def near(value: float) -> Estimate:
        return Estimate(value, value - 0.1, value + 0.1)

    levels = tuple(
        replace(
            level, accept_length_by_class={"code": near(2.5), "prose": near(prose)},
            requests_by_class={"code": 3, "prose": 3},
            accept_length_by_context={name: near(length) for name, length in contexts.items()},
            requests_by_context=dict.fromkeys(contexts, 3),
        )
        for level in one.levels
    )  # fmt: skip
    return replace(one, levels=levels)


def test_kinds_of_request_are_told_over_all_launches_that_count() -> None:
    records = in_turns()
    records[4] = with_classes(records[4], 1.6, {"64-127": 2.0, "8-15": 2.1})
    records[5] = with_classes(records[5], 1.9, {"64-127": 2.2, "8-15": 2.5})
    answer = break_even_of(records, small())
    kinds = [stratum for stratum in answer.strata if stratum.level == "c1"]
    assert [stratum.name for stratum in kinds] == ["code", "prose", "8-15", "64-127"]
    prose, *_ = least(kinds, "class")
    assert (prose.name, prose.requests) == ("prose", 6)  # three in each launch are too few alone
    assert prose.accept_length.to_json() == pytest.approx([1.75, 1.5, 2.0])
    row = next(r for r in answer.rows if (r.candidate_id, r.level, r.prompt_class) == (
        answer.candidate_id, "c1", "prose"
    ))  # fmt: skip
    assert (row.speedup, row.verdict, row.break_even) == (prose.speedup, prose.verdict, prose.break_even)
    told = next(r for r in summary(records)["candidates"] if (r["trials"], r["level"], r["class"]) == (
        [4, 5], "c1", "prose"
    ))  # fmt: skip
    assert told["accept_length"] == prose.accept_length.to_json()


@pytest.mark.parametrize(
    ("records", "why"),
    [
        (in_turns(), "the recommended candidate"),
        (
            in_turns(60.0, 90.0),
            "closest to the best launch without speculation by decode speed at c1, of those relaunch",
        ),
        (in_turns(60.0, 90.0)[:3], "closest to the best launch without speculation by decode speed at c1"),
    ],
    ids=["pays", "loses, and one that was not relaunched looks faster", "nothing was relaunched"],
)
def test_the_terminal_the_report_and_breakeven_discuss_one_candidate(records: list[TrialRecord], why: str) -> None:
    told, answer = summary(records)["in_question"], break_even_of(records, small())
    assert (told["candidate_id"], told["level"], told["why"]) == (answer.candidate_id, answer.level, answer.why)
    assert told["why"].startswith(why)
    rests_on = summary(records)["speedup"]["candidate_id"]
    assert told["candidate_id"] == rests_on


def test_another_candidate_is_asked_for_and_without_a_baseline_none_is_in_question() -> None:
    records = in_turns()
    evidence = weigh(records, small())
    other = in_question(evidence, list(measured(evidence, small())), small(), chain(2).candidate_id)
    assert other is not None
    assert (other.candidate_id, other.why) == (chain(2).candidate_id, "the candidate asked for")
    alone = weigh(records[1:3], small())
    assert in_question(alone, list(measured(alone, small())), small()) is None
    assert summary(records[1:3])["in_question"] is None


def test_what_keeps_no_constraint_is_discussed_as_such() -> None:
    records = [record(0, baseline()), record(1, chain(3), 150.0, accept=2.0, ttft_ms=900.0)]
    told = summary(records, space())["in_question"]
    assert told["candidate_id"] == chain(3).candidate_id
    assert told["why"].startswith("the fastest there; no verdict rests on it")


def test_a_speed_has_the_interval_of_its_launches_and_compare_shows_the_same() -> None:
    records = in_turns()
    rows = {(row["trials"][0], row["level"]): row for row in summary(records)["candidates"] if row["class"] == "all"}
    speed = rows[4, "c1"]["decode_speed"]
    assert speed[0] == pytest.approx(150.0 * 1.05**0.5)
    assert speed[2] / speed[0] > 1.03  # each launch alone knows its own to 1 %
    sides = [Side(name, small(), weigh(made, small())) for name, made in (("old", records), ("new", in_turns(120.0)))]
    pair = next(one for one in compare_studies(*sides).pairs if one.before == one.after == chain(3))
    assert pair.levels[0].before.to_json() == speed


def test_a_speed_that_was_not_measured_long_enough_has_no_interval() -> None:
    def vague(one: TrialRecord) -> TrialRecord:
        return replace(
            one, levels=tuple(replace(at, decode_speed=Estimate(at.decode_speed.est, 1.0, 900.0)) for at in one.levels)
        )

    records = [record(0, baseline()), vague(record(1, chain(3), 150.0, accept=2.0))]
    row = next(r for r in summary(records)["candidates"] if r["trials"] == [1])
    assert row["decode_speed"] == [pytest.approx(150.0), None, None]
    assert row["speedup"][1:] == [None, None]


@pytest.mark.parametrize(("metric", "ratio"), [("decode_speed", 1.25), ("ttft_p95_ms", 0.8)])
def test_an_objective_that_was_not_measured_long_enough_has_no_interval(metric: str, ratio: float) -> None:
    vague = Comparison("x", f"{metric}@c1", "b", math.log(1.25), 0.1, 4.0, 1, 2.0, (1, 1), (1,), long_enough=False)
    assert as_measured(vague).to_json() == [pytest.approx(ratio), None, None]
    assert gain(vague) == f"{ratio:.2f} × the {goal(vague.level)} ({TOO_SHORT})"


def test_an_exported_file_names_a_candidate_as_the_tables_do() -> None:
    fixed = space(LATENCY.replace("forbid:", "  decode-attention-backend: [triton]\nforbid:"))
    candidate = Candidate.of({**chain(3).values, "decode-attention-backend": "triton"})
    records = [record(0, baseline()), record(1, candidate, 150.0, accept=2.0)]
    told = summarise(records, fixed, None, name="small", engine="SGLang 0.5.23")
    (first, *_) = levels = [one for one in told.candidates if one.trials == [1]]
    assert "triton" in candidate.label
    assert first.label == fixed.label(candidate) == chain(3).label
    origin = Origin("small", "SGLang 0.5.23", simulated=False, means={candidate.candidate_id: levels})
    assert header(records[1], Launch.of(records[1].command), origin)[0] == f"# {first.label} (written by spectune)"


def test_one_launch_noise_is_told_and_calibrated() -> None:
    records = in_turns()
    told = summary(records)
    assert fit_noise(records, small()).launch_sd == pytest.approx(told["noise"]["launch_sd"], abs=1e-5)
    assert told["steadiness"][0].startswith(f"launch noise: {told['noise']['launch_sd']:.1%} between launches")
    assert set(told["steadiness"]) <= set(told["words"])


def test_the_only_kind_of_its_sort_is_all_requests_and_told_as_such_alone() -> None:
    records = [with_classes(one, 2.0, {"256-511": 2.0}) if one.candidate.speculative else one for one in in_turns()]
    assert {stratum.kind for stratum in break_even_of(records, small()).strata} == {"class"}
