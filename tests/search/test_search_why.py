import itertools
import json
import math
import operator
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_samples import record
from why_samples import ACCEPTED, TEXT, chain, exactly, field_space, launch, pcie, study, told

from spectune.analysis.diagnosis import Cost
from spectune.cli.answer_table import graph_lines
from spectune.cli.break_even_table import print_break_even_of
from spectune.engines.protocol import Mismatch
from spectune.search.answer.summary import summarise
from spectune.search.storage.steps import Role
from spectune.search.why import break_even_of, training_of
from spectune.serving import FailureClass
from spectune.space import Candidate


def row_of(answer, candidate, level="c1", prompt_class=None):
    wanted = (candidate.candidate_id, level, prompt_class)
    return next(row for row in answer.rows if (row.candidate_id, row.level, row.prompt_class) == wanted)


@pytest.fixture(scope="module")
def field_case():
    return break_even_of(study(), field_space(), candidate_id=chain(2).candidate_id)


def test_golden_the_field_case_is_retold(field_case):
    row = row_of(field_case, chain(2))
    assert row.accept_length.est == pytest.approx(2.0, abs=0.001)
    assert round(row.cycle_ms.est, 1) == 33.3
    assert round(row.break_even.est, 2) == 2.75
    assert round(row.speedup.est - 1.0, 2) == -0.27
    assert row.verdict == "loses"
    assert row.bound == 3
    assert [one.verdict for one in row.needed] == ["out of reach", "out of reach"]
    assert any("27% slower" in sentence for sentence in field_case.words)
    assert "120 tok/s needs an accept length of 3.99 (out of reach: 2 steps can give 3 at most)" in field_case.words


def test_golden_the_arithmetic_of_the_verify_alone_is_retold():
    answer = break_even_of(study(told), field_space(), candidate_id=chain(2).candidate_id)
    alone = row_of(answer, chain(2)).verify_alone
    assert round(alone.break_even, 2) == 2.46
    assert round(alone.speed_tok_s, 1) == 66.7
    assert round(alone.missing_ms, 1) == 3.3
    assert [round(one.accept_length.est, 2) for one in alone.needed] == [3.0, 3.6]
    assert [one.reachable for one in alone.needed] == [True, False]
    assert any("120 tok/s would take 3.60 (out of reach)" in sentence for sentence in answer.words)
    assert any("27% slower" in sentence for sentence in answer.words)


def test_the_cycle_is_told_apart_as_it_was_made(field_case):
    parts = row_of(field_case, chain(2)).parts
    assert parts.draft_ms.lo <= 2.5 <= parts.draft_ms.hi
    assert parts.verify_ms.lo <= 29.58 + 1.2 <= parts.verify_ms.hi
    assert parts.host_ms is None  # plain steps ran in graphs and verifies did not
    assert "host" in parts.words
    assert parts.draft_ms.est + parts.verify_ms.est + parts.unexplained_ms == pytest.approx(33.28, abs=0.01)


def test_the_host_is_told_where_both_ran_alike():
    def overhead(steps, batch):
        return 10.0 + 0.3 * (batch - 1) if not steps else 13.0 + 2.0 * steps + 0.3 * (batch * (steps + 1) - 1)

    answer = break_even_of(study(overhead, graphs=(True, True)), field_space())
    parts = row_of(answer, chain(3)).parts
    assert parts.host_ms.lo <= 3.0 <= parts.host_ms.hi
    assert parts.draft_ms.lo <= 6.0 <= parts.draft_ms.hi
    assert parts.host_ms.est == pytest.approx(3.0, abs=0.5)


def test_draft_and_verify_of_one_shape_are_not_told_apart():
    answer = break_even_of([launch(0, 0), launch(1, 3), launch(2, 3), launch(3, 0)], field_space())
    parts = row_of(answer, chain(3)).parts
    assert parts.draft_ms is None
    assert "not told apart" in parts.words
    assert answer.missing is None


def test_break_even_speedup_and_accept_length_say_the_same(field_case):
    assert len(field_case.rows) == 6 * 3 * 3  # candidates, levels, all requests and two classes
    for row in field_case.rows:
        assert (row.speedup.est > 1.0) == (row.accept_length.est > row.break_even.est)
        assert row.accept_length.est / row.break_even.est == pytest.approx(row.speedup.est)
        assert row.break_even.est == pytest.approx(row.baseline_tok_s * row.cycle_ms.est / 1000.0)
        if row.verdict == "pays":
            assert row.accept_length.est > row.break_even.hi
        if row.verdict == "loses":
            assert row.accept_length.est < row.break_even.hi


@settings(max_examples=25, deadline=None)
@given(plain=st.floats(2.0, 40.0), fixed=st.floats(0.0, 30.0), draft=st.floats(0.05, 8.0), token=st.floats(0.0, 0.5))
def test_all_figures_stay_consistent_on_any_machine(plain, fixed, draft, token):
    def cycle(steps, batch):
        return plain + token * (batch * (steps + 1) - 1) + (fixed + draft * steps if steps else 0.0)

    answer = break_even_of(study(cycle), field_space())
    for row in answer.rows:
        assert (row.speedup.est > 1.0) == (row.accept_length.est > row.break_even.est)
        assert row.break_even.est == pytest.approx(row.baseline_tok_s * row.cycle_ms.est / 1000.0)
    for falls in answer.waterfalls:
        inner = falls.steps[1:-1]
        assert falls.steps[0].ms + sum(step.ms for step in inner) == pytest.approx(falls.steps[-1].ms)
        assert falls.steps[0].tok_s + sum(step.tok_s for step in inner) == pytest.approx(falls.steps[-1].tok_s)
    chosen = row_of(answer, next(chain(s) for s in range(1, 7) if chain(s).candidate_id == answer.candidate_id))
    at = next(x for x in answer.what_if.by_accept_length if x.accept_length == chosen.accept_length.est)
    assert at.speed == pytest.approx(chosen.decode_speed.est)
    json.dumps(answer.to_json(), allow_nan=False)


def test_verifies_outside_graphs_are_told_with_the_verdict():
    summary = summarise(study(), field_space(), None, name="field", engine="SGLang 0.5.23")
    told = summary.outside_graphs
    assert told.cause == "eager"
    assert told.evidence == "the verify ran outside CUDA graphs at batch size 1, 8, 32"
    assert told.actions[0][1] == "a flag"
    (line,) = graph_lines(summary)
    assert line.startswith("outside CUDA graphs, EAGLE3")
    assert told.evidence in line
    inside = summarise(study(graphs=(True, True)), field_space(), None, name="field", engine="SGLang 0.5.23")
    assert inside.outside_graphs is None
    assert graph_lines(inside) == []


@pytest.mark.parametrize(
    ("engine", "advice"),
    [
        ("SGLang 0.5.23 on the CPU reference runtime", None),
        ("SGLang 0.5.20", "a newer SGLang"),
        ("an unknown engine", "SGLang 0.5.23, if this one is older"),
    ],
)
def test_another_version_is_advised_where_there_is_a_newer_one(engine: str, advice: str | None):
    told = summarise(study(), field_space(), None, name="field", engine=engine).to_json()["outside_graphs"]
    advised = [words for words, _ in told["actions"] if words.startswith("restart with")]
    assert [advice in words for words in advised] == ([] if advice is None else [True])
    answer = break_even_of(study(), field_space(), engine=engine)
    (cause,) = (cause for cause in answer.causes if cause.cause == "eager")
    assert [words for words, _ in cause.actions if words.startswith("restart with")] == advised


def test_a_long_name_keeps_the_columns_of_the_waterfall_apart(capsys, field_case):
    long = "EAGLE3 an-uncommonly-long-drafter 2,1,3 · graphs 1-64 · NCCL_ALGO=allreduce:tree · NCCL_PROTO=LL"
    falls = next(one for one in field_case.waterfalls if one.candidate_id == field_case.candidate_id)
    steps = (*falls.steps[:-1], replace(falls.steps[-1], words=long))
    shown = replace(field_case, waterfalls=(replace(falls, label=long, steps=steps),))
    print_break_even_of(shown)
    lines = capsys.readouterr().out.splitlines()
    at = lines.index(f"From no speculation to {long} at {falls.level}")
    assert lines[at + 1].split() == ["ms", "per", "token", "tok/s"]
    assert next(line for line in lines[at:] if line.startswith("this candidate")).split()[2:]


def test_rows_are_those_of_the_summary(field_case):
    summary = summarise(study(), field_space(), None, name="field", engine="sglang").to_json()
    by_key = {(row["candidate_id"], row["level"]): row for row in summary["candidates"] if row["class"] == "all"}
    for row in (row for row in field_case.rows if row.prompt_class is None):
        same = by_key[row.candidate_id, row.level]
        assert same["break_even"] == row.break_even.to_json()
        assert same["speedup"] == row.speedup.to_json()
        assert same["verdict"] == row.verdict


def test_the_waterfall_goes_from_the_baseline_to_the_candidate(field_case):
    at = (chain(2).candidate_id, "c1")
    falls = next(w for w in field_case.waterfalls if (w.candidate_id, w.level) == at)
    names = [step.name for step in falls.steps]
    assert names == ["baseline", "drafts", "draft", "verify", "unexplained", "rejected", "candidate"]
    assert round(falls.steps[0].tok_s, 1) == 82.5
    assert round(falls.steps[-1].tok_s, 1) == 60.1
    assert falls.steps[1].reached_tok_s == pytest.approx(3 * 82.5, abs=0.1)
    assert next(step for step in falls.steps if step.name == "rejected").tok_s < 0.0


def test_causes_are_ranked_by_what_they_cost_and_actions_by_what_they_take(field_case):
    lost = [cause.tok_s_lost for cause in field_case.causes if cause.tok_s_lost is not None]
    assert lost == sorted(lost, reverse=True)
    costs = [cost.rank for _, cost in field_case.actions]
    assert costs == sorted(costs)
    assert {Cost.FLAG, Cost.DRAFTER, Cost.TRAINING} <= {cost for _, cost in field_case.actions}
    causes = {cause.cause: cause for cause in field_case.causes}
    assert {"eager", "verify_time", "rejected_drafts", "weak_drafter", "draft_time"} <= causes.keys()
    assert causes["draft_time"].tok_s_lost == pytest.approx(2000 / (33.28 - 2.5) - 60.1, abs=0.5)


def test_graphs_are_not_advised_where_they_never_helped(field_case):
    off = replace(launch(8, 2), candidate=Candidate.of({**chain(2).values, "disable-decode-cuda-graph": True}))
    answer = break_even_of([*study(), off], field_space(), candidate_id=off.candidate.candidate_id)
    assert "graphs_off" not in {cause.cause for cause in answer.causes}
    assert "eager" in {cause.cause for cause in answer.causes}


def test_advice_says_what_it_would_do_at_every_load():
    def loaded(steps, batch):  # more steps are a gain for one request, and a loss for many
        return 10.0 + 0.3 * (batch - 1) if not steps else 12.0 + 0.2 * steps + 0.3 * (batch * (steps + 1) - 1)

    answer = break_even_of(study(loaded), field_space(), candidate_id=chain(1).candidate_id)
    (cause,) = [one for one in answer.causes if one.cause == "not_the_fastest"]
    told = re.findall(r"([\d.]+) tok/s at (c\d+) instead of ([\d.]+)", cause.evidence)
    assert [level for _, level, _ in told] == ["c1", "c8", "c32"]
    (costs,) = [(new, now) for new, level, now in told if float(new) < float(now)]
    assert costs == (told[2][0], told[2][2])
    assert cause.action.startswith("where c1 alone counts, launch ")
    share = float(costs[0]) / float(costs[1]) - 1.0
    assert cause.action.endswith(f", but {costs[0]} at c32 instead of {costs[1]} ({share:+.0%})")
    assert float(told[0][0]) - float(told[0][2]) == pytest.approx(cause.tok_s_lost, abs=0.11)


def cheap(steps, batch):
    """Drafting costs next to nothing: the more steps the better."""
    return 12.0 + 0.3 * (batch - 1) if not steps else 12.0 + 0.1 * steps + 0.3 * (batch - 1)


def test_what_was_never_launched_is_advised_against_the_fastest_that_was():
    records = [launch(trial, steps, cheap) for trial, steps in enumerate((0, 1, 2, 0))]
    slow, fast = (
        break_even_of(records, field_space(), candidate_id=chain(steps).candidate_id).causes for steps in (1, 2)
    )
    for causes in (slow, fast):
        (better,) = [one for one in causes if one.cause == "not_the_best_shape"]
        assert "never launched" in better.evidence
        fastest = 2000.0 / cheap(2, 1)
        assert float(re.search(r"the fastest that was launched gives ([\d.]+)", better.evidence)[1]) == pytest.approx(
            fastest, rel=0.001
        )
        assert float(re.search(r"predicted to give: ([\d.]+) tok/s", better.action)[1]) > fastest
    assert "not_the_fastest" in {one.cause for one in slow}
    assert "not_the_fastest" not in {one.cause for one in fast}


def test_ways_to_draft_that_were_launched_enter_as_measured():
    records = study(cheap)
    quick = replace(records[3], levels=tuple(exactly(one, one.cycle_ms.est * 0.8) for one in records[3].levels))
    quick = replace(
        quick, levels=tuple(replace(one, decode_speed=one.decode_speed.scaled(1.25)) for one in quick.levels)
    )
    records[3] = quick
    answer = break_even_of(records, field_space(), candidate_id=chain(2).candidate_id)
    measured = row_of(answer, chain(3)).decode_speed.est
    now = next(load for load in answer.what_if.by_load if load.concurrency == 1)
    assert now.best_num_steps == 3
    assert now.best_speed == pytest.approx(measured)
    assert any(words.startswith(f"3,1,4 was launched: {measured:.1f} tok/s at c1") for words in answer.what_if.words)


def as_fast(steps, batch):
    """Every chain is as fast as no speculation."""
    length = 1.0 + sum(itertools.accumulate(ACCEPTED[:steps], operator.mul))
    return (12.0 + 0.3 * batch) * length * (1.001 if steps else 1.0)


def test_advice_claims_no_more_than_the_verdict():
    answer = break_even_of(study(as_fast), field_space(), candidate_id=chain(2).candidate_id)
    assert row_of(answer, chain(2)).verdict == "unclear"
    assert "weak_drafter" not in {cause.cause for cause in answer.causes}
    assert not any("without" in words for words, cost in answer.actions if cost is not Cost.MEASUREMENT)
    words, cost = answer.actions[0]
    assert cost is Cost.MEASUREMENT
    assert "`spectune export STUDY --pick 2`" in words
    named = break_even_of(study(as_fast), field_space(), candidate_id=chain(2).candidate_id, study="field")
    assert "`spectune export field --pick 2`" in named.actions[0][0]


def test_nothing_is_predicted_by_a_fit_that_is_far_off():
    def loaded(steps, batch):
        return pcie(steps, batch) * (0.4 if (steps + batch) % 2 else 2.0)

    answer = break_even_of(study(loaded), field_space(), candidate_id=chain(2).candidate_id)
    assert answer.what_if is None
    assert "not_the_best_shape" not in {cause.cause for cause in answer.causes}
    assert sum("nothing is predicted: the fit of all cycles is off by" in words for words in answer.words) == 1


@pytest.mark.parametrize("cycle", [pcie, told, cheap, as_fast])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_advice_is_given_once_and_of_flags_at_most_what_was_measured_and_what_is_predicted(cycle, steps):
    answer = break_even_of(study(cycle), field_space(), candidate_id=chain(steps).candidate_id)
    costs = [cost for _, cost in answer.actions]
    assert costs.count(Cost.TRAINING) <= 1
    assert sum("on this traffic" in words for words, _ in answer.actions) <= 1
    launches = [words for words, cost in answer.actions if cost is Cost.FLAG and "launch " in words]
    assert len(launches) <= 2
    assert not any("--speculative-* arguments" in words for words in launches)


def test_steps_are_judged_by_what_was_counted_at_each_position():
    short = [launch(0, 0), launch(5, 5)]  # too few for a fit
    answer = break_even_of(short, field_space())
    (cause,) = [one for one in answer.causes if one.cause == "too_many_steps"]
    survival = tuple(itertools.accumulate(ACCEPTED[:5], operator.mul))
    useful = sum(one >= 0.1 for one in survival)
    assert f"{useful} of them give {1.0 + sum(survival[:useful]):.2f}" in cause.evidence
    assert f"step 5 is accepted in {survival[4]:.1%} of the cycles" in cause.evidence
    assert "alike" not in cause.evidence


def test_parts_that_are_not_told_have_no_columns_and_a_reason(capsys, field_case):
    print_break_even_of(field_case)
    lines = capsys.readouterr().out.splitlines()
    at = next(at for at, line in enumerate(lines) if " level " in line)
    assert lines[at].split()[-4:] == ["draft", "verify", "host", "rest"]
    first = lines[at + 2].split()
    cycle, *parts = [float(cell) for cell in first[-6:-1] if cell != "incl."]
    assert sum(parts) == pytest.approx(cycle, abs=0.02)
    untold = break_even_of([launch(0, 0), launch(1, 3), launch(2, 3), launch(3, 0)], field_space())
    print_break_even_of(untold)
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if " level " in line).split()[-1] == "cycle"
    assert sum("too few launches differ in steps" in line for line in lines) == 1
    assert not any("?" in line.split() for line in lines)


def test_at_a_single_load_it_says_what_a_second_one_would_tell():
    space = field_space(re.sub(r"levels: \[.*\]\}", "levels: [{concurrency: 1}]}", TEXT).replace("c32}", "c1}"))
    records = [replace(one, levels=one.levels[:1]) for one in study()]
    answer = break_even_of(records, space)
    assert any("at a single load every step more is a token more to verify" in words for words in answer.words)
    assert answer.words[-1].startswith("at which load it begins or stops to pay is not told")


def test_a_better_drafter_moves_the_best_number_of_steps(field_case):
    table = field_case.what_if.by_accept_length
    steps = [at.best_num_steps for at in table]
    assert steps == sorted(steps)
    assert steps[0] == 1
    assert steps[-1] == 6
    assert all(at.best_speed >= at.speed - 1e-9 for at in table)
    assert [at.speed for at in table] == sorted(at.speed for at in table)
    perfect = table[-1]
    assert perfect.best_accept_length == pytest.approx(7.0, abs=0.01)
    assert perfect.best_speed == pytest.approx(7000.0 / pcie(6, 1), rel=0.02)


def test_what_is_predicted_at_what_was_measured_is_what_was_measured(field_case):
    for load in field_case.what_if.by_load:
        assert load.measured == (load.concurrency in (1, 8, 32))
        if load.measured:
            row = row_of(field_case, chain(2), f"c{load.concurrency}")
            assert load.speed == pytest.approx(row.decode_speed.est)
            assert load.baseline_speed == pytest.approx(row.baseline_tok_s)
    middle = next(load for load in field_case.what_if.by_load if load.concurrency == 4)
    assert middle.baseline_speed == pytest.approx(1000.0 / pcie(0, 4), rel=0.03)
    assert middle.speed == pytest.approx(2000.0 / pcie(2, 4), rel=0.03)
    cycles = [at.cycle_ms for at in field_case.what_if.by_cycle]
    assert min(cycles) < 33.28 < max(cycles)
    assert all(
        at.break_even == pytest.approx(82.5 * at.cycle_ms / 1000, rel=0.01) for at in field_case.what_if.by_cycle
    )


def test_the_load_limit_of_a_machine_that_is_known():
    def crossing(steps, batch):  # 20 + batch ms a plain step; two steps: 30 + 2.5 batch
        return 20.0 + batch if not steps else 30.0 + 2.5 * batch

    answer = break_even_of(study(crossing), field_space(), candidate_id=chain(2).candidate_id)
    assert answer.load_limit.between == ("c8", "c32")
    assert "between c8 and c32" in answer.load_limit.words
    # 2.0 × (20 + b) = 30 + 2.5 b at b = 20
    assert answer.load_limit.concurrency.est == pytest.approx(20.0, rel=0.1)
    assert answer.load_limit.concurrency.lo < 20.0 < answer.load_limit.concurrency.hi


def test_contradictions_are_named_with_the_missing_milliseconds():
    odd = launch(2, 2)
    levels = tuple(replace(level, inter_chunk_ms=level.inter_chunk_ms * 0.9) for level in odd.levels)
    answer = break_even_of([launch(0, 0), launch(1, 1), replace(odd, levels=levels)], field_space())
    (found,) = row_of(answer, chain(2)).contradictions
    assert found.between == "inter_chunk"
    assert found.missing_ms == pytest.approx(3.33, abs=0.01)
    assert "3.3 ms missing" in found.words


def test_the_engines_own_cycle_is_held_against_the_clients():
    answer = break_even_of(study(), field_space(), engine_cycles={(2, "c1"): 30.0, (2, "c8"): pcie(2, 8)})
    row = row_of(answer, chain(2))
    assert row.engine_cycle_ms == 30.0
    assert [one.between for one in row.contradictions] == ["engine_step"]
    assert row.contradictions[0].missing_ms == pytest.approx(3.28)
    assert row_of(answer, chain(2), "c8").contradictions == ()


def test_a_baseline_that_cannot_be_is_a_contradiction():
    answer = break_even_of([launch(0, 0, lambda s, b: 50.0), launch(1, 2), launch(2, 3)], field_space())
    assert "break_even" in {one.between for one in row_of(answer, chain(2)).contradictions}


def test_targets_can_be_asked_for():
    answer = break_even_of(study(), field_space(), targets=[70.0])
    assert [one.target for one in row_of(answer, chain(2)).needed] == [70.0]


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([], "no launch is finished"),
        ([launch(1, 2)], "no baseline is finished"),
        ([launch(0, 0)], "no launch with speculation"),
        (
            [record(0, chain(0), failure=FailureClass.CRASH), record(1, chain(2), failure=FailureClass.CRASH)],
            "; 2 launches failed (crash): ",
        ),
        ([record(0, chain(0), suspect=[Mismatch("x", 1, 2)])], "; 1 launch did not run as asked for: x is 2, not 1"),
    ],
    ids=["none", "no-baseline", "no-speculation", "only-failed", "suspect"],
)
def test_a_study_without_an_answer_says_what_it_lacks(records, words):
    answer = break_even_of(records, field_space())
    assert answer.missing is not None
    assert words in answer.missing
    assert answer.rows == ()
    assert answer.to_json()["rows"] == []


def test_two_launches_have_a_break_even_and_no_more():
    answer = break_even_of([launch(0, 0), launch(1, 2)], field_space())
    assert answer.missing is None
    assert answer.what_if is None
    assert row_of(answer, chain(2)).parts.draft_ms is None
    falls = next(w for w in answer.waterfalls if w.level == "c1")
    assert [step.name for step in falls.steps] == ["baseline", "drafts", "cycle", "rejected", "candidate"]
    assert any(words.startswith("launch with fewer") for words, _ in answer.actions) is False


def test_open_loops_and_odd_names_are_borne():
    text = TEXT.replace("{concurrency: 32}", "{rate: 2.5}").replace("org/37k", "'org/<b>\"x\"; rm -rf\\n$(y)'")
    space = field_space(text)
    name = space.parameters["speculative-draft-model-path"].values[0]

    def renamed(one):
        levels = tuple(replace(x, level="r2.5") if x.level == "c32" else x for x in one.levels)
        return replace(one, levels=levels)

    records = [renamed(launch(t, s, drafter=str(name))) for t, s in enumerate((0, 1, 2, 3, 0))]
    answer = break_even_of(records, space)
    assert row_of(answer, chain(2, str(name)), "r2.5").parts.draft_ms is None
    assert answer.load_limit is not None
    assert len(answer.load_limit.points) == 2
    json.dumps(answer.to_json(), allow_nan=False)


def test_confirmed_launches_alone_count_as_in_the_verdict():
    again = [replace(launch(trial, steps), role=Role.CONFIRM) for trial, steps in ((8, 2), (9, 0), (10, 2), (11, 0))]
    answer = break_even_of([*study(), *again], field_space())
    row = row_of(answer, chain(2))
    assert row.confirmed
    assert row.trials == (8, 10)
    assert answer.candidate_id == chain(2).candidate_id


def test_training_asks_for_the_break_even_of_the_candidate(field_case):
    from spectune.analysis.why import DrafterPoint

    points = [DrafterPoint(10_000, 1.9), DrafterPoint(37_000, 2.0), DrafterPoint(1_400_000, 3.3)]
    found = training_of(field_case, study(), field_space(), points, tokens_per_sample=1000)
    assert found.accept_length == pytest.approx(2.746, abs=0.01)
    assert 150_000 < found.samples.est < 700_000  # the field case reckoned 200 to 500 K
    best = 32 * 1000 / pcie(0, 32)
    assert found.cost.throughput_tok_s == pytest.approx(best)
    assert found.cost.hours.est == pytest.approx(found.samples.est * 1000 / best / 3600)
    assert any("more than the 3" in words for words in found.warnings)
    assert training_of(break_even_of([], field_space()), [], field_space(), points, tokens_per_sample=1) is None


def test_an_unmeasurably_slow_level_is_no_division_by_zero():
    slow = launch(2, 2)
    levels = tuple(
        exactly(replace(level, decode_speed=level.decode_speed.scaled(1e-3)), 33_000.0) for level in slow.levels
    )
    answer = break_even_of([launch(0, 0), launch(1, 1), replace(slow, levels=levels)], field_space())
    assert math.isfinite(row_of(answer, chain(2)).break_even.est)


def test_a_way_to_draft_is_foreseen_alike_whichever_candidate_is_asked_about():
    records, speeds = study(), {}
    for steps in (1, 2):
        found = break_even_of(records, field_space(), candidate_id=chain(steps).candidate_id).what_if
        now = next(at for at in found.by_load if at.concurrency == 1)
        speeds[steps] = ((now.best_num_steps, now.best_eagle_topk, now.best_num_draft_tokens), now.best_speed)
    assert speeds[1][0] == speeds[2][0]
    assert speeds[1][1] == pytest.approx(speeds[2][1], rel=0.01)
