import json
import re

import plotly.graph_objects as go
import pytest
from report_page import Page
from report_samples import ENVIRONMENT, LEVELS, SPACE, candidate, failed, lively, record, summary

from spectune.machine import Difference
from spectune.report import write_report
from spectune.report.render import embedded_json
from spectune.search.records import Status

HOSTILE = "</script><script>alert(1)</script> \"'\n<img src=x onerror=alert(2)> <!-- {{ 7*7 }} &amp; \u2028"


def page_of(tmp_path, records, environment=ENVIRONMENT, space=SPACE, **changes):
    path = write_report(summary(records, **changes), records, environment, space, tmp_path / "report.html")
    return Page(path.read_text())


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return page_of(tmp_path_factory.mktemp("report"), lively())


def test_the_folder_is_made_and_the_file_is_small(tmp_path):
    path = write_report(summary(lively()), lively(), {}, "", tmp_path / "reports" / "sample.html")
    assert path == tmp_path / "reports" / "sample.html"
    assert path.stat().st_size < 6_000_000


def test_verdict_marks_and_caveats_are_told(page):
    assert "Speculate: EAGLE3 strong 3,1,4 gives 1.66 × at c1" in page.text
    assert "measured on the CPU reference runtime" in page.text
    assert "Method and caveats" in page.text
    assert "the budget of 12 launches is used up (12)" in page.text


def test_a_simulated_study_says_so(tmp_path):
    assert "SIMULATED" in page_of(tmp_path, lively(), simulated=True).text


def test_an_unfinished_study_says_so(tmp_path):
    text = page_of(tmp_path, lively(), finished=False, stop=None).text
    assert "has not ended yet" in text
    assert "not come to its end" in text


def test_the_command_can_be_pasted_and_holds_neither_ports_of_the_trial_nor_secrets(page):
    assert "env -u NCCL_PROTO NCCL_ALGO=allreduce:ring \\ python3 -m sglang.launch_server" in page.text
    assert "--host 127.0.0.1 --port 30000" in page.text
    assert "29501" not in page.text
    assert "Left out because it holds a secret, set it yourself: HF_TOKEN." in page.text


def test_secrets_are_blotted_out_wherever_they_turn_up(tmp_path):
    records = [*lively(), failed(9, candidate(4), "server_args(token='hf-very-secret')")]
    path = write_report(summary(records), records, ENVIRONMENT, SPACE, tmp_path / "report.html")
    content = path.read_text()
    assert "hf-very-secret" not in content
    assert "HF_TOKEN: •••" in content


def test_break_even_is_written_out_as_arithmetic(page):
    assert "442.0 tok/s × 4.625 ms = 2.04" in page.text
    assert "3.39 / 4.625 ms = 733.0 tok/s" in page.text
    assert "3 steps can give 4 at most" in page.text
    assert "500 tok/s needs 2.31 (reached)" in page.text
    assert "900 tok/s needs 4.16 (out of reach)" in page.text


def test_the_field_case_retold(tmp_path):
    base, tried = record(0, candidate(0), (82.0, 40.0)), record(1, candidate(2), (60.0, 30.0), 2.0)
    text = page_of(tmp_path, [base, tried], targets={"decode_speed": [120.0]}).text
    assert "82.00 tok/s × 33.33 ms = 2.73" in text
    assert "0.73 ×" in text
    assert "120 tok/s needs 4.00 (out of reach)" in text


def test_failed_and_suspect_launches_are_explained(page):
    assert "unsupported : the draft tree is too small: RuntimeError: selected index k out of range" in page.text
    assert "Log excerpt of trial 7" in page.text
    assert "asked for 5, the engine reports 3" in page.text


def test_accept_length_by_kind_of_prompt(page):
    assert "Accept length by kind of prompt" in page.text
    assert "3.73" in page.text


def test_nothing_is_loaded_from_anywhere(page):
    assert set(page.loads) <= {"#content", "data:,"}
    assert not {"link rel=stylesheet", "iframe", "object", "embed", "img"} & set(page.tags)
    assert any("default-src 'none'" in value for _, _, value in page.attributes)


def test_headings_tables_and_controls_are_labelled(page):
    assert page.tags.count("h1") == 1
    assert ("html", "lang", "en") in page.attributes
    ids = {value for _, name, value in page.attributes if name == "id"}
    for _, name, value in page.attributes:
        if name in {"aria-labelledby", "aria-describedby", "data-copy"}:
            assert value in ids
    assert page.tags.count("th") > page.tags.count("table")


def test_plotly_is_inlined_once_and_every_chart_is_valid(page):
    assert sum("plotly.js v" in script for script in page.scripts) == 1
    assert set(page.figures) == {"objectives", "trade-off", "break-even", "acceptance"}
    for figure in page.figures.values():
        go.Figure(json.loads(re.sub(r"var\(--[\w-]+\)", "red", json.dumps(figure))))


def test_charts_show_intervals_baselines_and_the_pareto_front(page):
    names = {trace.get("name") for trace in page.figures["objectives"]["data"]}
    assert {"Pareto front", "without speculation", "beaten in both"} <= names
    trade_off = page.figures["trade-off"]["data"]
    assert any(trace["marker"]["symbol"].startswith("diamond") for trace in trade_off if "symbol" in trace["marker"])
    assert all(len(trace["x"]) == len(LEVELS) for trace in trade_off if trace["mode"].startswith("lines"))
    measured = next(
        trace for trace in page.figures["break-even"]["data"] if trace.get("name") == "measured accept length"
    )
    assert measured["error_x"]["array"][0] > 0


def test_one_objective_needs_no_plot_of_two(tmp_path):
    one = [{"metric": "decode_speed", "direction": "maximize", "level": "c1"}]
    assert "objectives" not in page_of(tmp_path, lively(), objectives=one).figures


@pytest.mark.parametrize(
    "records",
    [
        [],
        [record(0, candidate(0), (442.0, 261.0))],
        [record(0, candidate(3), (442.0, 261.0), 3.0)],
        [failed(0, candidate(0)), failed(1, candidate(3))],
        [failed(0, candidate(0)), record(1, candidate(3), (733.0, 334.0), 3.4)],
        [record(0, candidate(3), status=Status.SUSPECT)],
    ],
    ids=[
        "nothing",
        "one baseline",
        "one candidate",
        "failures only",
        "no finished baseline",
        "suspect without figures",
    ],
)
def test_little_is_reported_as_well(records, tmp_path):
    page = page_of(tmp_path, records, environment={}, space="not: [yaml")
    assert "All launches" in page.text
    assert ("Nothing can be recommended" in page.text) == (not any(r.levels for r in records))


def test_unknown_ends_of_intervals_are_left_out(tmp_path):
    told = summary(lively())
    for row in told["candidates"]:
        row["output_throughput"] = [row["accept_length"][0], None, None]
        row["speedup"] = row["speedup"] and [1.2, None, None]
    path = write_report(told, lively(), {}, SPACE, tmp_path / "report.html")
    assert "NaN" not in json.dumps(Page(path.read_text()).figures)


def test_hostile_text_is_text_everywhere(tmp_path):
    hostile = candidate(3, HOSTILE, **{"env.X": HOSTILE})
    records = [
        record(0, candidate(0), (442.0, 261.0)),
        record(1, hostile, (700.0, 300.0), 3.2, why=HOSTILE),
        failed(2, candidate(2), HOSTILE),
    ]
    told = summary(records, sentence=HOSTILE, words=[HOSTILE], engine=HOSTILE, study=HOSTILE)
    told["recommended"]["argv"].append(HOSTILE)
    for row in told["candidates"]:
        row["class"] = HOSTILE if row["class"] == "prose" else row["class"]
    path = write_report(told, records, {HOSTILE: HOSTILE}, f"x: |\n  {HOSTILE}", tmp_path / "report.html")
    page = Page(path.read_text())
    assert page.tags.count("script") == 3
    assert "img" not in page.tags
    assert not any(name.startswith("on") for _, name, _ in page.attributes)
    assert "{{ 7*7 }}" in page.text
    drawn = json.dumps(page.figures)
    assert "<img" not in drawn
    assert "alert(1)&lt;/" not in drawn
    assert "&gt;" in drawn


def test_json_cannot_end_its_script_element():
    encoded = embedded_json({"a": "</script><!--&\u2028"})
    assert not set("<>&\u2028") & set(encoded)
    assert json.loads(encoded) == {"a": "</script><!--&\u2028"}


def test_two_hundred_trials_stay_small_and_quick(tmp_path):
    records = [record(0, candidate(0), (442.0, 261.0))]
    records += [record(n, candidate(1 + n % 7, f"drafter-{n}"), (400.0 + n, 200.0 + n), 1.9) for n in range(1, 200)]
    path = write_report(summary(records), records, ENVIRONMENT, SPACE, tmp_path / "report.html")
    assert path.stat().st_size < 6_000_000


def test_what_was_learned_and_seen_of_launches_is_shown(tmp_path):
    changed = Difference("gpus.devices.x.power_limit_w", 700, 400, matters=True, why="it runs slower")
    harmless = Difference("host.boot_id", "a", "b", matters=False)
    records = [
        record(0, candidate(0), (442.0, 261.0), notes=("2 of 7 greedy answers part from the baseline's",)),
        record(1, candidate(3), (733.0, 334.0), 3.4, environment_changes=(changed, harmless)),
    ]
    text = page_of(tmp_path, records, exclusions=[{"words": "NCCL_PROTO=LL failed in 2 of 2", "trials": [4, 5]}]).text
    assert "2 of 7 greedy answers part from the baseline's" in text
    assert "the machine was not as it was when the study began: gpus.devices.x.power_limit_w" in text
    assert "boot_id" not in text
    assert "Not worth another launch: NCCL_PROTO=LL failed in 2 of 2." in text
