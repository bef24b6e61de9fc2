"""What a study says in the end."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_samples import SPACE, baseline, chain, record, rows, space

from spectune.engines.protocol import Mismatch
from spectune.search.answer.summary import summarise
from spectune.search.planning.plan import Stop
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.serving import FailureClass


def summary(records: list[TrialRecord]) -> dict[str, Any]:
    found = summarise(records, space(), Stop("enough", 12.0), name="s", engine="SGLang 0.5.23").to_json()
    json.dumps(found)
    return found


def test_a_clear_win_is_recommended_with_its_figures() -> None:
    found = summary([record(0, baseline()), record(1, chain(3), 160.0, accept=2.4, ttft_ms=90.0)])
    assert found["verdict"] == "speculation"
    assert found["recommended"]["trial"] == 1
    assert "1.60 × the decode speed at c1" in found["sentence"]
    (row,) = [r for r in rows(found, "EAGLE3 strong 3,1,4") if r["level"] == "c1" and r["class"] == "all"]
    assert row["speedup"][0] == pytest.approx(1.6)
    assert row["break_even"][0] == pytest.approx(2.4 / 1.6)
    assert row["verdict"] == "pays"


def test_an_accept_length_is_set_against_a_break_even_only_where_one_request_s_speed_counts() -> None:
    """The space asks for decode speed at c1 and the time to first token at c8."""
    found = summary([record(0, baseline()), record(1, chain(3), 160.0, accept=2.4, ttft_ms=90.0)])
    together, speed, first = found["words"][:3]
    assert ", what counts is the geometric mean of decode speed at c1 and 1 / ttft p95 at c8; " in together
    assert ", accept length 2.40, break-even 1.50; " in speed
    assert ", what counts is 1 / ttft p95 at c8; " in first


def test_a_clear_loss_recommends_the_baseline() -> None:
    found = summary([record(0, baseline()), record(1, chain(3), 60.0, accept=2.0, ttft_ms=150.0)])
    assert found["verdict"] == "no_speculation"
    assert found["recommended"]["trial"] == 0
    assert [row["ttft_p95_ms"] for row in rows(found, "EAGLE3 strong 3,1,4") if "ttft_p95_ms" in row] == [100.0, 150.0]
    sentence = found["sentence"]
    assert sentence == (
        "Do not speculate: by the geometric mean of decode speed at c1 and ttft p95 at c8 no candidate that was "
        "launched is as fast as the best launch without; closest is EAGLE3 strong 3,1,4 with 0.63 × its speed."
    )
    assert found["details"][0].startswith("never launched: org/weak; ")
    assert found["details"][1:] == [
        "each alone: 0.60 × the decode speed at c1 and 1.50 × the ttft p95 at c8",
        "not confirmed: no launch was made after it was picked, and the best of many is partly luck",
    ]


def test_a_gain_by_several_objectives_is_told_for_all_together_once() -> None:
    found = summary([record(0, baseline()), record(1, chain(3), 160.0, accept=2.4, ttft_ms=90.0)])
    assert found["verdict"] == "speculation"
    ratio, low, high = found["speedup"]["judged"]
    together = [line for line in [found["sentence"], *found["details"]] if f"{ratio:.2f} ×" in line]
    assert together == [f"all together: {ratio:.2f} × by the geometric mean ({low:.2f}–{high:.2f})"]


def test_a_load_at_which_it_pays_is_told_beside_a_verdict_against_it() -> None:
    faster_alone = record(1, chain(3), 130.0, accept=2.4, ttft_ms=300.0)
    found = summary([record(0, baseline()), faster_alone])
    assert found["verdict"] == "no_speculation"
    told = found["details"][-1]
    assert told.startswith("by the speed of one request alone speculation pays at c1 (EAGLE3 strong 3,1,4: 1.30 ×, 1.")
    assert ", not confirmed)" in told
    assert " and c8 (EAGLE3 strong 3,1,4: 1.30 ×, 1." in told
    assert told.endswith("; its launch file is exported"), "nothing beats it at c1"
    text = SPACE.replace("objectives: [{maximize: decode_speed, level: c1}, ", "objectives: [")
    elsewhere = summarise([record(0, baseline()), faster_alone], space(text), None, name="a b", engine="e").details[-1]
    assert elsewhere.endswith("; its launch file: `spectune export 'a b' --pick latency`"), "once, though it pays twice"


def test_a_hair_is_not_a_win() -> None:
    found = summary([record(0, baseline()), record(1, chain(3), 101.0, accept=2.0)])
    assert found["verdict"] in ("tie", "undecided")
    assert found["recommended"]["trial"] == 0


def test_confirmed_figures_replace_the_lucky_one() -> None:
    records = [
        record(0, baseline()),
        record(1, chain(3), 200.0, accept=2.0),
        record(2, baseline(), role=Role.CONFIRM),
        record(3, chain(3), 150.0, accept=2.0, role=Role.CONFIRM),
    ]
    found = summary(records)
    (row,) = [r for r in rows(found, "EAGLE3 strong 3,1,4") if r["level"] == "c1" and r["class"] == "all"]
    assert row["trials"] == [3]
    assert row["decode_speed"][0] == pytest.approx(150.0)
    assert row["confirmed"]
    assert found["recommended"]["trial"] == 3


def test_failed_and_suspect_launches_are_counted_and_never_recommended() -> None:
    records = [
        record(0, baseline()),
        record(1, chain(3), 500.0, accept=3.0, suspect=[Mismatch("page-size", 1, 64)]),
        record(2, chain(2), failure=FailureClass.MEMORY),
    ]
    found = summary(records)
    assert found["recommended"]["trial"] == 0
    assert found["pareto"] == [0]
    assert found["failures"] == {"memory": 1}
    assert found["suspect"] == 1


def test_a_broken_bound_is_never_recommended() -> None:
    found = summary([record(0, baseline()), record(1, chain(3), 200.0, accept=2.4, ttft_ms=900.0)])
    assert found["recommended"]["trial"] == 0
    assert found["pareto"] == [0]


def test_the_set_holds_what_nothing_beats() -> None:
    records = [
        record(0, baseline(), 100.0, ttft_ms=50.0),
        record(1, chain(3), 160.0, ttft_ms=90.0),
        record(2, chain(2), 150.0, ttft_ms=95.0),
    ]
    assert summary(records)["pareto"] == [0, 1]


def test_nothing_measured_is_no_answer() -> None:
    found = summary([record(0, baseline(), failure=FailureClass.CRASH)])
    assert found["recommended"] is None
    assert found["candidates"] == []
    assert "No answer" in found["sentence"]
    (told,) = found["details"]
    assert told.startswith("1 launch failed (crash): ")


def test_acceptance_is_told_by_class_for_speculation_only() -> None:
    found = summary([record(0, baseline()), record(1, chain(3), 160.0, accept=2.4)])
    classes = {(r["label"], r["class"]) for r in found["candidates"]}
    assert ("EAGLE3 strong 3,1,4", "code") in classes
    assert all(cls == "all" for label, cls in classes if "no speculation" in label)


@given(st.lists(st.floats(50, 500), min_size=1, max_size=3), st.lists(st.floats(50, 500), min_size=1, max_size=3))
def test_the_arithmetic_of_every_row_fits_together(baselines: list[float], speeds: list[float]) -> None:
    roles = [Role.BASELINE, Role.CONFIRM, Role.CONFIRM]
    records = [record(n, baseline(), v, role=role) for n, (v, role) in enumerate(zip(baselines, roles, strict=False))]
    records += [record(len(records) + n, chain(3), v, accept=2.4) for n, v in enumerate(speeds)]
    found = summary(records)
    (plain,) = [r for r in rows(found, "no speculation") if r["level"] == "c1"]
    (row,) = [r for r in rows(found, "EAGLE3 strong 3,1,4") if r["level"] == "c1" and r["class"] == "all"]
    assert row["baseline_speed"] == pytest.approx(plain["decode_speed"][0])
    assert row["baseline_speed"] * row["cycle_ms"][0] / 1000 == pytest.approx(row["break_even"][0])
    assert row["accept_length"][0] / row["cycle_ms"][0] * 1000 == pytest.approx(row["decode_speed"][0])
    assert row["decode_speed"][0] / plain["decode_speed"][0] == pytest.approx(row["speedup"][0])
    assert (row["verdict"] == "pays") == (row["speedup"][1] > 1.0)


def test_what_was_launched_once_says_so() -> None:
    found = summary([record(0, baseline()), record(1, chain(3), 160.0, accept=2.4, ttft_ms=90.0)])
    assert any(line.startswith("not confirmed: no launch was made after") for line in found["details"])


def test_words_name_candidates_by_their_labels() -> None:
    found = summary([record(0, baseline()), record(1, chain(3), 160.0, accept=2.4, ttft_ms=90.0)])
    assert "EAGLE3 strong 3,1,4" in " ".join(found["words"])
    assert chain(3).candidate_id not in " ".join(found["words"])


def test_the_same_mode_ratio_compares_with_the_same_system_settings() -> None:
    records = [record(0, baseline(), 100.0), record(1, baseline("LL"), 125.0), record(2, chain(3), 150.0, accept=2.4)]
    found = summary([*records, record(3, chain(2, proto="Simple"), 140.0, accept=2.0)])
    ratios = {
        r["label"]: r["same_mode_ratio"] for r in found["candidates"] if r["level"] == "c1" and r["class"] == "all"
    }
    assert ratios["EAGLE3 strong 3,1,4"] == pytest.approx(1.5)
    assert ratios["EAGLE3 strong 2,1,3 · NCCL_PROTO=Simple"] is None
    assert ratios["no speculation"] is None


def test_one_figure_decides_and_each_objective_is_told() -> None:
    """Faster at one level and slower at the other: the geometric mean of both is what counts."""
    both = space(SPACE.replace("{minimize: ttft_p95_ms, level: c8}]", "{maximize: output_throughput, level: c8}]"))
    records = [record(0, baseline()), record(1, chain(3), 100.0, accept=2.4)]
    fast, slow = (record(n, chain(3), speed, accept=2.4) for n, speed in ((1, 180.0), (1, 60.0)))
    mixed = dataclasses.replace(records[1], levels=(fast.levels[0], slow.levels[1]))
    found = summarise([records[0], mixed], both, None, name="s", engine="e").to_json()
    assert found["speedup"]["judged"][0] == pytest.approx((1.8 * 0.6) ** 0.5)
    assert found["verdict"] in ("undecided", "tie")
    told = " ".join(found["words"])
    assert "objectives together: undecided" in told
    assert "decode_speed@c1: speculation pays" in told
    assert "output_throughput@c8: speculation does not pay" in told


def test_constraints_are_judged_on_the_mean_of_a_candidates_launches() -> None:
    launches = [record(n, chain(3), 160.0, accept=2.4, ttft_ms=ttft) for n, ttft in ((1, 540.0), (2, 440.0))]
    assert summary([record(0, baseline(), ttft_ms=490.0), *launches])["recommended"]["trial"] in (1, 2)


def test_what_failures_ruled_out_stands_in_the_summary() -> None:
    failed = [record(n, chain(n, proto="LL"), failure=FailureClass.NCCL) for n in (1, 2, 3)]
    found = summary([record(0, baseline()), *failed])
    assert found["exclusions"] == [{"words": "NCCL_PROTO=LL failed in 3 of 3 launches", "trials": [1, 2, 3]}]
    assert summary([record(0, baseline())])["exclusions"] == []
