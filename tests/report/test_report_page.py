"""The report as text: what it says, and that nothing in a study can make it say or do anything else."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest
from report_page import Page
from report_samples import ENVIRONMENT, candidate, failed, lively, record, space, summary

from spectune.analysis.estimate import Estimate
from spectune.blotting import blotted_yaml
from spectune.engines.protocol import Effective
from spectune.errors import SpectuneError
from spectune.machine import CoresUsed, Difference, Others
from spectune.report import write_report
from spectune.report.material import Material
from spectune.report.sections.break_even import break_even
from spectune.report.sections.trade_off import highlighted, trade_off
from spectune.search.guided.effects import Effect
from spectune.search.proposing.exclusions import Exclusion
from spectune.search.storage.records import Seconds, Status, TrialRecord
from spectune.search.storage.steps import Role
from spectune.search.storage.worker_variables import Reached

TURNS = "\u202e\u200f\x1b"
HOSTILE = (
    TURNS + "</script><script>alert(1)</script> \"'\n<img src=x onerror=alert(2)> <!-- {{ 7*7 }} &amp; \u2028 `$(id)`"
)
EFFECT = Effect(
    "page-size", False, 16, 1, {}, "decode_speed", "c1", Estimate(-0.03, -0.05, -0.01), "launches",
    "-3.0% (-5.0% to -1.0%)",
)  # fmt: skip


def page_of(tmp_path, records, environment=ENVIRONMENT, within=None, **changes):
    studied = within or space()
    told = summary(records, studied, **changes)
    return Page(write_report(told, records, environment, studied, tmp_path / "report.html").read_text())


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return page_of(tmp_path_factory.mktemp("report"), lively())


def test_the_folder_is_made(tmp_path):
    path = write_report(summary(lively()), lively(), {}, space(), tmp_path / "reports" / "sample.html")
    assert path == tmp_path / "reports" / "sample.html"


def test_only_a_page_is_written_over(tmp_path):
    path = tmp_path / "report.html"
    for there in ("", "<!DOCTYPE html>\nold"):
        path.write_text(there)
        assert "Method and caveats" in write_report(summary(lively()), lively(), {}, space(), path).read_text()
    path.write_text("schema: 1\n")
    with pytest.raises(SpectuneError, match="exists already and is no report; name another file with -o"):
        write_report(summary(lively()), lively(), {}, space(), path)
    assert path.read_text() == "schema: 1\n"


def test_verdict_marks_and_caveats_are_told(page):
    assert "Speculate: EAGLE3 strong 3,1,4 gives 1.66 × the decode speed at c1" in page.text
    assert "measured on the CPU reference runtime" in page.text
    assert "Method and caveats" in page.text
    assert "It ended because: the budget of 12 launches is used up." in page.text


def test_the_headline_is_as_careful_as_the_answer(tmp_path, page):
    again = [(0, 440.0), (3, 735.0), (3, 731.0), (0, 441.0)]
    later = [
        record(20 + n, candidate(steps), (speed, speed / 2), 1.0 + steps * 0.8, role=Role.CONFIRM)
        for n, (steps, speed) in enumerate(again)
    ]
    unconfirmed = "Speculate: not confirmed by a later launch"
    assert page.text.startswith(f"{unconfirmed} · sample")
    assert page_of(tmp_path, lively() + later).text.startswith("Speculate · sample")
    assert page_of(tmp_path, lively() + later, finished=False).text.startswith("Speculate so far · sample")
    losing = [record(0, candidate(0), (442.0, 261.0)), record(1, candidate(3), (100.0, 50.0), 1.1)]
    assert page_of(tmp_path, losing).text.startswith("Do not speculate: not confirmed by a later launch")


def test_the_tiles_are_the_figures_that_the_verdict_rests_on(tmp_path):
    records = [
        record(0, candidate(0), (400.0, 200.0)), record(1, candidate(3), (404.0, 160.0), 3.0),
        record(2, candidate(6), (420.0, 100.0), 3.5),
        *(
            record(3 + n, candidate(steps), (speed, other), 1.0 + steps, role=Role.CONFIRM)
            for n, (steps, speed, other) in enumerate([(0, 400.0, 200.0), (3, 404.0, 160.0)] * 2)
        ),
    ]  # fmt: skip
    found = page_of(tmp_path, records)
    means = "decode speed at c1 and output throughput at c8"
    shown = [f"0.90 × the best launch without, by the geometric mean of {means}", "1.01 × by decode speed at c1 alone",
             "0.80 × by output throughput at c8 alone", "4.00 its accept length at c1"]  # fmt: skip
    places = [found.text.index(tile) for tile in shown]
    assert places == sorted(places)
    assert "break-even for one request 3.96 at c1, 5.00 at c8" in found.text
    rows = break_even(Material.of(summary(records), records, {}, space())).content.rows
    assert [row.label for row in rows] == ["EAGLE3 strong 3,1,4"] * 2 + ["EAGLE3 strong 6,1,7"] * 2


def test_without_a_comparison_there_is_no_tile_of_one(tmp_path):
    text = page_of(tmp_path, [record(0, candidate(0), (400.0, 200.0))]).text
    assert "× the best launch without, by" not in text


def test_time_that_rounds_to_nothing_has_no_sign(tmp_path):
    short = dataclasses.replace(lively()[0].seconds, total=32.999)
    records = [dataclasses.replace(one, seconds=short) for one in lively()]
    assert "spectune itself 0.0 s 0.0 %" in page_of(tmp_path, records).text


def test_launches_beside_other_work_are_a_caveat(tmp_path):
    others = {"c8": Others(CoresUsed(2, 0.4, 1.6, 0.5))}
    crowded = [dataclasses.replace(record, others=others) for record in lively()]
    assert "A busy machine" in page_of(tmp_path, crowded).text
    assert "A busy machine" not in page_of(tmp_path, lively()).text


def test_a_simulated_study_says_so_on_top(tmp_path):
    text = page_of(tmp_path, lively(), simulated=True).text
    assert "SIMULATED" in text[: text.index("Recommended launch")]


def test_an_unfinished_study_says_so(tmp_path):
    text = page_of(tmp_path, lively(), finished=False, stop=None).text
    assert "has not ended yet" in text
    assert "not come to its end" in text


def test_commands_can_be_pasted_and_hold_neither_ports_of_the_trial_nor_secrets(page):
    assert "env -u NCCL_PROTO NCCL_ALGO=allreduce:ring \\ python3 -m sglang.launch_server" in page.text
    assert "--host 127.0.0.1 --port 30000" in page.text
    assert "29501" not in page.text
    assert "Left out because it holds a secret, set it yourself: HF_TOKEN." in page.text


def test_every_launch_that_nothing_beats_has_a_command(page):
    copied = [value for _, name, value in page.attributes if name == "data-copy"]
    assert copied == ["command-2", "command-3"]


def test_secrets_are_blotted_out_wherever_they_turn_up(tmp_path):
    records = [*lively(), failed(9, candidate(4), "server_args(token='hf-very-secret')")]
    path = write_report(summary(records), records, ENVIRONMENT, space(), tmp_path / "report.html")
    assert "hf-very-secret" not in path.read_text()
    assert "token=&#39;•••&#39;" in path.read_text()
    assert blotted_yaml("a: {HF_TOKEN: hf-x, b: [c]}") == "a: {HF_TOKEN: •••, b: [c]}"


def test_break_even_is_written_out_as_arithmetic(page):
    assert "442 tok/s × 4.625 ms = 2.04" in page.text
    assert "3.39 / 4.625 ms = 733.0 tok/s" in page.text
    assert "3 steps can give 4 at most" in page.text
    assert "500 tok/s needs an accept length of 2.31 (reached)" in page.text
    assert "900 tok/s needs an accept length of 4.16, and 3 steps can give 4 at most; " in page.text


def test_the_field_case_retold(tmp_path):
    base, tried = record(0, candidate(0), (82.0, 40.0)), record(1, candidate(2), (60.0, 30.0), 2.0)
    text = page_of(tmp_path, [base, tried], within=space(targets="{decode_speed: [120]}")).text
    assert "82 tok/s × 33.33 ms = 2.73" in text
    assert "0.73 ×" in text
    assert "120 tok/s needs an accept length of 4.00 (out of reach: 2 steps can give 3 at most)" in text
    assert "Do not speculate" in text


def test_the_way_from_the_baseline_to_the_candidate_is_drawn(page):
    assert "2.26 ms (442 tok/s): no speculation" in page.text
    assert "+0.21 ms (−132 tok/s): drafts that are rejected: 3.39 tokens of 4 come out" in page.text
    assert "1.36 ms (733 tok/s): this candidate" in page.text
    assert "Next, cheapest first" in page.text


def test_failures_are_grouped_with_their_log(page):
    assert "unsupported 1" in page.text
    assert "the draft tree is too small: RuntimeError: selected index k out of range" in page.text
    assert "Log excerpt of trial 7" in page.text


def test_the_worst_kind_of_prompt_is_named(page):
    assert "EAGLE3 strong 3,1,4: c1: prose prompts gain least: accept length 3.05 (2.99–3.11) against a" in page.text
    assert "Accept length by kind of prompt" in page.text


def test_what_was_searched_is_counted_and_what_was_not_is_said(page):
    assert "speculative-num-steps 1 2 2 1 3 2 4 0 5 1 6 1 7 0" in page.text
    assert "Forbidden by the search space: {speculative-num-steps: >5, page-size: 16}." in page.text
    assert "9 launches in 5 min 2 s on 8 GPUs: 0.670 GPU-hours, 60% of them measuring." in page.text


def test_what_was_learned_and_seen_of_launches_is_shown(tmp_path):
    changed = Difference("gpus.devices.x.power_limit_w", 700, 400, matters=True, why="it runs slower")
    harmless = Difference("host.boot_id", "a", "b", matters=False)
    records = [
        record(0, candidate(0), (442.0, 261.0), notes=("2 of 7 greedy answers part from the baseline's",)),
        record(1, candidate(3), (733.0, 334.0), 3.4, environment_changes=(changed, harmless)),
    ]
    learned = Exclusion("NCCL_PROTO=LL failed in 2 of 2", (4, 5), lambda _: True)
    text = page_of(tmp_path, records, exclusions=[learned]).text
    assert "2 of 7 greedy answers part from the baseline's" in text
    assert "the machine was not as it was when the study began: gpus.devices.x.power_limit_w" in text
    assert "boot_id" not in text
    assert "Not worth another launch: NCCL_PROTO=LL failed in 2 of 2." in text


def test_what_a_launch_really_ran_is_read_back(tmp_path):
    ran = Effective({"decode": (1, 2, 4)}, 16384, 16, {"attention_backend": "triton"}, {"NCCL_ALGO": "Ring"})
    reached = (Reached("NCCL_PROTO", "LL", 7, 8), Reached("NCCL_ALGO", None, 8, 8))
    records = [record(0, candidate(0), (442.0, 261.0), effective=ran, environment_reached=reached), *lively()[8:]]
    text = page_of(tmp_path, records).text
    assert "KV cache: 16,384 tokens running requests: 16 at most decode graphs: 1, 2, 4" in text
    assert "NCCL_PROTO=LL reached 7 of 8 workers" in text
    assert "NCCL_ALGO unset reached 8 of 8 workers" in text
    assert "not as asked speculative-num-steps: asked for 5, the engine reports 3" in text


def test_rates_that_were_offered_and_achieved_stand_in_a_table(tmp_path):
    clocked = space(
        workload="{prompts: builtin:tiny, output_tokens: 128, levels: [{concurrency: 1}, {rate: 8}]}",
        objectives="[{maximize: decode_speed, level: c1}]",
    )
    records = []
    for one in lively()[:3]:
        closed, opened = one.levels
        opened = dataclasses.replace(opened, level="r8", offered_rate=8.0, achieved_rate=6.0)
        records.append(dataclasses.replace(one, levels=(closed, opened)))
    assert "r8 8.00 6.00 75%" in page_of(tmp_path, records, within=clocked).text


def test_a_single_rate_has_its_table_too_and_levels_stand_in_their_order(tmp_path):
    only = space(
        workload="{prompts: builtin:tiny, output_tokens: 128, levels: [{rate: 8}]}",
        objectives="[{maximize: decode_speed, level: r8}]",
    )
    records = []
    for one in lively()[:2]:
        opened = dataclasses.replace(one.levels[1], level="r8", offered_rate=8.0, achieved_rate=6.0)
        records.append(dataclasses.replace(one, levels=(opened,)))
    assert "Requests by the clock" in page_of(tmp_path, records, within=only).text
    rows = break_even(Material.of(summary(lively()), lively(), {}, space())).content.rows
    for label in dict.fromkeys(row.label for row in rows):
        assert [row.level for row in rows if row.label == label] == ["c1", "c8"]


def test_drift_jumps_and_noise_are_told(tmp_path):
    speeds = (442.0, 441.0, 443.0, 380.0, 381.0, 380.5)
    records = [record(n, candidate(0), (speed, 261.0), role=Role.DRIFT) for n, speed in enumerate(speeds)]
    told = summary(records)
    assert told.jumps
    section = page_of(tmp_path, records).text.split("Where it was measured")[2]
    for words in told.steadiness:  # as the terminal and the verdict say it
        assert words in section
        assert words in told.words
    assert "The same configuration again" in section


def test_effects_are_shown_when_the_study_knows_any(tmp_path):
    assert "What each parameter does" not in page_of(tmp_path, lively(), effects=[]).text
    unknown = dataclasses.replace(EFFECT, value=32, basis="nothing", says="unknown: never varied")
    shown = page_of(tmp_path, lively(), effects=[EFFECT, unknown])
    assert "page-size: 16 instead of 1" in shown.text
    assert "page-size: 32 instead of 1" not in shown.text  # in the table alone
    assert "unknown: never varied" in shown.text


def test_nothing_is_loaded_from_anywhere(page):
    links = {value for value in page.loads if not value.startswith("#")}
    assert links <= {"data:,"}
    assert not {"link rel=stylesheet", "iframe", "object", "embed", "img"} & set(page.tags)
    assert any("default-src 'none'" in value for _, _, value in page.attributes)


def test_headings_tables_and_controls_are_labelled(page):
    assert page.tags.count("h1") == 1
    assert ("html", "lang", "en") in page.attributes
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for _, name, value in page.attributes:
        if name in {"aria-labelledby", "aria-describedby", "data-copy", "for"}:
            assert value in ids
        if name == "href" and value.startswith("#"):
            assert value[1:] in ids
    assert page.tags.count("th") > page.tags.count("table")


def test_every_mark_lies_in_its_plot(page):
    placed = ((name, value) for tag, name, value in page.attributes if tag in {"line", "use", "rect"})
    places = [
        float(value[:-1]) for name, value in placed if name in {"x", "y", "x1", "x2", "y1", "y2"} and "%" in value
    ]
    assert len(places) > 100
    assert all(0.0 <= place <= 100.0 for place in places)


def test_a_point_for_every_candidate_and_level_with_its_intervals(page):
    tips = [value for _, name, value in page.attributes if name == "data-tip"]
    for row in (row for row in summary(lively()).candidates if row.trials == [5]):
        level, speed = row.level, "{:.0f} tok/s ({:.0f} to {:.0f})".format(*row.figures.decode_speed.to_json())
        assert any(tip.startswith(f"EAGLE3 weak 3,1,4 at {level}\ndecode speed {speed}") for tip in tips)


def test_what_nothing_beats_is_shown_as_such_however_many_there_are():
    front = [record(n, candidate(n), (700.0 - 20.0 * n, 300.0 + 10.0 * n), 2.0) for n in range(1, 8)]
    beaten = record(8, candidate(3, "runtime:drafter-weak"), (376.0, 190.0), 2.0)
    records = [record(0, candidate(0), (442.0, 261.0)), *front, beaten]
    material = Material.of(summary(records), records, {}, space())
    colours = highlighted(material)
    ends = {record.candidate.candidate_id for record in (front[0], front[-1])}
    assert len(material.pareto) == 7 > len(colours) - 1
    assert ends < colours.keys()
    (plot, _) = trade_off(material).content
    for dot in plot.dots:
        optimal = any(dot.tip.startswith(material.labels[one]) for one in material.pareto)
        assert dot.filled == optimal, dot
        assert (dot.shape == "point") == ("weak" in dot.tip), dot
    last = [(key.text, key.shape, key.filled) for key in plot.keys[-2:]]
    assert last == [("others that are Pareto-optimal", "circle", True), ("other candidates", "point", False)]


def test_one_objective_needs_no_plot_of_two(tmp_path):
    one = space(objectives="[{maximize: decode_speed, level: c1}]")
    assert "What was searched for" not in page_of(tmp_path, lively(), within=one).text


@pytest.mark.parametrize(
    "records",
    [
        [],
        [record(0, candidate(0), (442.0, 261.0))],
        [record(0, candidate(3), (442.0, 261.0), 3.0)],
        [failed(0, candidate(0)), failed(1, candidate(3))],
        [failed(0, candidate(0)), record(1, candidate(3), (733.0, 334.0), 3.4)],
        [record(0, candidate(3), status=Status.SUSPECT)],
        [record(0, candidate(0), seconds=Seconds(0.0, 0.0, 0.0, 0.0))],
    ],
    ids=[
        "nothing",
        "one baseline",
        "one candidate",
        "failures only",
        "no finished baseline",
        "suspect without figures",
        "no time at all",
    ],
)
def test_little_is_reported_as_well(records, tmp_path):
    page = page_of(tmp_path, records, environment={})
    assert "All launches" in page.text
    assert ("Nothing can be recommended" in page.text) == (not any(r.levels for r in records))


def test_records_of_an_older_spectune_are_reported(tmp_path):
    older = []
    for one in lively():
        data = one.to_json()
        for name in ("environment_reached", "effective", "notes", "environment_changes"):
            del data[name]
        del data["seconds"]["checking"]
        for level in data["levels"]:
            for name in ("accept_length_by_context", "requests_by_class", "decode_cycle_ms", "offered_rate"):
                del level[name]
        older.append(TrialRecord.from_json(data, "result.json"))
    text = page_of(tmp_path, older).text
    assert "Speculate: EAGLE3 strong 3,1,4" in text
    assert "prose prompts gain least" not in text  # how many requests stood behind a class was not kept


def test_without_a_baseline_no_break_even_is_claimed(tmp_path):
    text = page_of(tmp_path, [failed(0, candidate(0)), record(1, candidate(3), (733.0, 334.0), 3.4)]).text
    assert "no baseline" in text
    assert "Why not faster" not in text
    assert "What if the drafter were better?" not in text


def test_unknown_ends_of_intervals_are_left_out(tmp_path):
    def open_ended(figure: Estimate | None) -> Estimate | None:
        return figure and Estimate(figure.est, -math.inf, math.inf)

    told = summary(lively())
    rows = []
    for row in told.candidates:
        throughput, speedup = open_ended(row.figures.output_throughput), open_ended(row.figures.speedup)
        figures = dataclasses.replace(row.figures, output_throughput=throughput, speedup=speedup)
        rows.append(dataclasses.replace(row, figures=figures))
    told = dataclasses.replace(told, candidates=rows)
    content = write_report(told, lively(), {}, space(), tmp_path / "report.html").read_text()
    assert not re.search(r"\b(nan|inf|None)\b", content.split("<body>")[1].split("<script>")[0])


def test_hostile_text_is_text_everywhere(tmp_path):
    hostile = candidate(3, HOSTILE, **{"env.X": HOSTILE})
    records = [
        record(0, candidate(0), (442.0, 261.0)),
        record(1, hostile, (700.0, 300.0), 3.2, why=HOSTILE, notes=(HOSTILE,)),
        failed(2, candidate(2), HOSTILE),
    ]
    told = summary(records, sentence=HOSTILE, details=[HOSTILE], words=[HOSTILE], engine=HOSTILE, study=HOSTILE)
    told = dataclasses.replace(
        told,
        effects=[dataclasses.replace(EFFECT, parameter=HOSTILE, value=HOSTILE, says=HOSTILE)],
        candidates=[dataclasses.replace(row, by_class={HOSTILE: row.figures.accept_length}) for row in told.candidates],
    )
    path = write_report(told, records, {HOSTILE: HOSTILE}, space(), tmp_path / "report.html")
    page = Page(path.read_text())
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not any(name.startswith("on") for _, name, _ in page.attributes)
    assert "{{ 7*7 }}" in page.text
    assert not {letter for letter in path.read_text() if letter not in "\n\t" and not letter.isprintable()}
    assert r"\u202e\u200f\x1b" in page.text


def test_commands_in_sentences_are_set_as_code(tmp_path):
    told = summary(lively(), details=["give `spectune search mine.yaml --trials <n>` again, or `top`", "a ` alone"])
    content = write_report(told, lively(), {}, space(), tmp_path / "report.html").read_text()
    assert "<code>spectune search mine.yaml --trials &lt;n&gt;</code> again, or <code>top</code></li>" in content
    assert "<li>a ` alone</li>" in content


def test_two_hundred_trials_stay_small(tmp_path):
    records = [record(0, candidate(0), (442.0, 261.0))]
    records += [record(n, candidate(1 + n % 7, f"drafter-{n}"), (400.0 + n, 200.0 + n), 1.9) for n in range(1, 200)]
    path = write_report(summary(records), records, ENVIRONMENT, space(), tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000


def test_where_the_interval_is_unknown_the_whole_chart_is_open(tmp_path):
    short = record(1, candidate(2), (60.0, 30.0), 2.0)
    unknown = Estimate(60.0, -math.inf, math.inf)
    short = dataclasses.replace(
        short, levels=tuple(dataclasses.replace(level, decode_speed=unknown) for level in short.levels)
    )
    found = page_of(tmp_path, [record(0, candidate(0), (40.0, 20.0)), short])
    assert "1.50 × the best launch without: whether speculation pays is not known." in found.text
    assert "the best launch without: speculation pays" not in found.text


def test_two_series_without_speculation_are_told_apart():
    plain = [record(n, candidate(0, **{"page-size": size}), (442.0 + n, 261.0 - n)) for n, size in enumerate((1, 16))]
    records = [*plain, record(2, candidate(3), (600.0, 200.0), 2.0)]
    tones = list(highlighted(Material.of(summary(records), records, {}, space())).values())
    assert sorted(tones) == ["baseline", "s1", "s8"]
