import json
import shlex
import subprocess
import sys
from dataclasses import replace

import pytest
from export_samples import record
from hypothesis import given
from hypothesis import strategies as st
from study_samples import SPACE, launched, steps_study

from spectune.errors import SpectuneError
from spectune.export import Format, Origin, adaptive_table, export_candidates, parse_formats
from spectune.export.adaptive import table_doubts
from spectune.search import Role, weigh

ORIGIN = Origin("study", "SGLang 0.5.23", simulated=False)
SPEEDS = {3: (120.0, 60.0, 30.0), 1: (115.0, 70.0, 35.0), 0: (100.0, 50.0, 40.0)}


def table(records, space, of=0, version="0.5.23"):
    return adaptive_table(records[of].candidate, weigh(records, space), space, version)


def written(tmp_path, records, space, of=0):
    pick = records[of]
    tables = {pick.candidate.candidate_id: table(records, space, of)}
    (files,) = export_candidates([pick], tmp_path, ORIGIN, formats=parse_formats("adaptive"), tables=tables)
    return files.files[Format.ADAPTIVE], files.shell


def test_each_load_gets_its_best_steps_and_0_is_one_of_them(tmp_path):
    space, records = steps_study(SPEEDS)
    file, _ = written(tmp_path, records, space)
    content = json.loads(file.read_text())
    comment = content.pop("comment")
    assert content == {
        "1": {"candidate_steps": [3]},
        "8": {"candidate_steps": [1]},
        "32": {"candidate_steps": [0]},
    }
    assert comment[0].endswith("(written by spectune)")
    assert "c8: 1 step best (steps: tok/s of one request; 0: 50.0, 1: 70.0, 3: 60.0)" in comment
    assert any("was not measured" in line for line in comment)


def test_what_is_not_shown_to_differ_is_said_and_ties_go_to_fewer_steps():
    space, records = steps_study({3: (100.9, 60.0, 30.0), 1: (100.5, 57.0, 20.0), 0: (90.0, 40.0, 35.0)})
    first, second, third = table(records, space)
    assert (first.best, second.best, third.best) == (1, 3, 0)
    assert first.unclear == (3,)
    assert second.unclear == (1,)
    assert "1 not shown to differ" in second.words


def test_the_script_that_comes_with_it_is_started_with_steps_of_the_table(tmp_path):
    space, records = steps_study({3: (110.0, 60.0, 30.0), 1: (115.0, 70.0, 35.0), 0: (100.0, 50.0, 40.0)})
    show = (sys.executable, "-c", "import sys; print(*sys.argv[1:])")
    records[0] = replace(records[0], command=replace(records[0].command, argv=show))
    file, _ = written(tmp_path, records, space)
    start = json.loads(file.read_text())["comment"][-1].partition(": ")[2]
    shown = subprocess.run(shlex.split(start), cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert f"--speculative-adaptive --speculative-adaptive-config {file.name}" in shown
    assert shown.strip().endswith("--speculative-num-steps 1 --speculative-num-draft-tokens 2")


@pytest.mark.parametrize(
    ("speeds", "of", "version", "reason"),
    [
        (SPEEDS, 0, "0.5.13", "since 0.5.14, but this study ran 0.5.13"),
        (SPEEDS, 0, None, "an unknown version"),
        (SPEEDS, 2, "0.5.23", "does not run with"),
        ({3: SPEEDS[3], 1: SPEEDS[1]}, 0, "0.5.23", "nothing without speculation was measured"),
        ({3: SPEEDS[3], 1: SPEEDS[1][:2], 0: SPEEDS[0]}, 0, "0.5.23", "nothing was measured with 1 step at c32"),
        ({3: (80.0, 40.0, 20.0), 0: SPEEDS[0]}, 0, "0.5.23", "0 steps are best at every load"),
    ],
)
def test_without_the_evidence_it_says_what_is_missing(speeds, of, version, reason):
    # c32 is no objective here, so that a launch without it counts at the other loads.
    space, records = steps_study(speeds, SPACE.replace(", {maximize: output_throughput, level: c32}", ""))
    with pytest.raises(SpectuneError, match=reason):
        table(records, space, of, version)


def test_other_settings_and_trees_are_no_evidence():
    space, records = steps_study(SPEEDS)
    other = launched(3, 5, (500.0, 500.0, 500.0), **{"page-size": 16})
    tree = launched(4, 2, (500.0, 500.0, 500.0), **{"speculative-eagle-topk": 2, "speculative-num-draft-tokens": 4})
    records += [other, tree]
    assert [entry.best for entry in table(records, space)] == [3, 1, 0]
    with pytest.raises(SpectuneError, match="page-size 16"):
        table(records, space, 3)
    with pytest.raises(SpectuneError, match="only topk=1 is supported"):
        table(records, space, 4)


def test_0_steps_are_those_of_the_launchs_own_settings_and_a_faster_baseline_with_others_is_named(tmp_path):
    space, records = steps_study(SPEEDS)
    tuned = launched(3, 0, (130.0, 65.0, 45.0), **{"page-size": 16})
    table_ = table([*records, tuned], space)
    assert [entry.best for entry in table_] == [3, 1, 0]
    assert [entry.tuned.speed for entry in table_] == pytest.approx([130.0, 65.0, 45.0])
    assert table_[2].words.endswith("; 45.0 with a launch of its own (no speculation · page-size 16)")
    comment = json.loads(written(tmp_path, [*records, tuned], space)[0].read_text())["comment"]
    assert any("under this launch's other settings" in line for line in comment)
    assert [entry.tuned for entry in table(records, space)] == [None] * 3


def test_what_sglang_does_not_combine_with_it_is_refused():
    space, records = steps_study(SPEEDS, SPACE.replace("tp-size: 8", "tp-size: 8, enable-two-batch-overlap: true"))
    with pytest.raises(SpectuneError, match="enable-two-batch-overlap is not supported"):
        table(records, space)


def test_loads_without_a_batch_size_are_passed_over():
    text = SPACE.replace("{concurrency: 8}", "{rate: 2.5}")
    space, records = steps_study(SPEEDS, text)
    assert [entry.concurrency for entry in table(records, space)] == [1, 32]


@given(st.lists(st.sampled_from([*Format, " sh", ""]), min_size=1))
def test_each_format_is_written_once(words):
    assert not any(words) or set(parse_formats(",".join(words))) >= {Format(word.strip()) for word in words if word}


def test_formats_are_read_in_order():
    assert parse_formats(" adaptive, yaml,yaml") == (Format.ADAPTIVE, Format.CONFIG)
    for wrong in ("", ",", "sh,json", "sh;yaml", "SH", "sh\n--"):
        with pytest.raises(SpectuneError, match="--format takes"):
            parse_formats(wrong)


def test_the_table_brings_its_script_and_without_one_nothing_is_brought(tmp_path):
    (none,) = export_candidates([record()], tmp_path, ORIGIN, formats=[Format.ADAPTIVE])
    assert (dict(none.files), dict(none.refused)) == ({}, {})
    why = SpectuneError("0 steps are best at every load")
    tables = {record().candidate.candidate_id: why}
    (files,) = export_candidates([record()], tmp_path, ORIGIN, formats=[Format.ADAPTIVE, Format.CONFIG], tables=tables)
    assert list(files.files) == [Format.CONFIG]
    assert dict(files.refused) == {Format.ADAPTIVE: str(why)}


def test_entries_that_no_later_launch_bears_out_are_named_in_the_table_and_beside_it(tmp_path):
    space, records = steps_study(SPEEDS)
    again = [launched(3 + index, steps, SPEEDS[steps]) for index, steps in enumerate((3, 0))]
    records += [replace(record, role=Role.CONFIRM) for record in again]
    tables = {records[0].candidate.candidate_id: table(records, space)}
    (files,) = export_candidates(records[:1], tmp_path, ORIGIN, formats=[Format.ADAPTIVE], tables=tables)
    (note,) = files.notes
    assert note.startswith("steps NOT CONFIRMED: 1 at c8; ")
    assert note in json.loads(files.files[Format.ADAPTIVE].read_text())["comment"]
    records.append(replace(launched(5, 1, SPEEDS[1]), role=Role.CONFIRM))
    tables = {records[0].candidate.candidate_id: table(records, space)}
    (files,) = export_candidates(records[:1], tmp_path, ORIGIN, formats=[Format.ADAPTIVE], tables=tables)
    assert list(files.notes) == []


def test_a_load_at_which_another_launch_without_speculation_is_faster_is_warned_of():
    space, records = steps_study({3: (160.0, 60.0, 40.0), 0: (100.0, 70.0, 25.0)})
    assert table_doubts(table(records, space))[1:] == []
    tuned = launched(2, 0, (101.0, 71.0, 50.0), **{"page-size": 16})
    found = table([*records, tuned], space)
    assert [entry.best for entry in found] == [3, 0, 3]
    (doubt,) = table_doubts(found)[1:]
    assert doubt.startswith(
        "at c32 a launch of its own without speculation is faster, 50.0 tok/s instead of 40.0 (no speculation · "
    )
