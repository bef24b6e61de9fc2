from pathlib import Path

import pytest
from export_samples import SPECULATIVE, record

from spectune.errors import SpectuneError
from spectune.export import DEFAULT_FORMATS, Format, Origin, export_candidates

ORIGIN = Origin("study", "SGLang 0.5.23", simulated=False)
PLAIN = record(0, {"speculative-algorithm": "none"})
CHAIN = record(3)
PAGED = record(5, {**SPECULATIVE, "page-size": 16})
ALL = (Format.SHELL, Format.CONFIG, Format.COMPOSE)


def export(folder: Path, *launches, formats=DEFAULT_FORMATS, pick=None) -> set[str]:
    """Export and return what lies in the folder then."""
    export_candidates(launches, folder, ORIGIN, formats=formats, pick=pick)
    return {path.name for path in folder.iterdir()}


def test_what_a_pick_wrote_stays_when_the_answer_is_written_again(tmp_path):
    export(tmp_path, PLAIN, CHAIN)
    picked = export(tmp_path, CHAIN, formats=ALL, pick="latency") | export(tmp_path, PLAIN, pick="trial-0")
    assert {"launch-latency.sh", "launch-latency.yaml", "launch-latency.compose.yaml", "launch-trial-0.sh"} < picked
    assert export(tmp_path, PLAIN, CHAIN) == picked
    left = {name for name in picked if "latency" in name or "trial" in name}
    assert export(tmp_path, PLAIN) == left | {"launch-no-speculation.sh", "launch-no-speculation.yaml"}


def test_other_formats_stay_as_long_as_their_candidate_is_in_the_answer(tmp_path):
    before = export(tmp_path, PLAIN, CHAIN, formats=(Format.COMPOSE,))
    assert export(tmp_path, CHAIN, PLAIN) > before
    left = export(tmp_path, PLAIN)
    assert left == {f"launch-no-speculation.{ending}" for ending in ("sh", "yaml", "compose.yaml")}


def test_a_pick_that_has_become_another_launch_leaves_nothing_of_the_first(tmp_path):
    export(tmp_path, CHAIN, formats=ALL, pick="throughput")
    assert export(tmp_path, CHAIN, formats=[Format.SHELL], pick="throughput") >= {"launch-throughput.compose.yaml"}
    assert export(tmp_path, PLAIN, formats=[Format.SHELL], pick="throughput") == {"launch-throughput.sh"}


def test_a_file_is_of_its_candidate_whatever_its_name(tmp_path):
    # Both are called eagle3-drafter-strong-s3-k1-n4; only the page size tells them apart.
    export(tmp_path, CHAIN, formats=ALL)
    assert export(tmp_path, PAGED, formats=[Format.SHELL]) == {"launch-eagle3-drafter-strong-s3-k1-n4.sh"}


def test_files_of_others_stay(tmp_path):
    mine = {"launch-mine.sh": "#!/bin/sh\n", "launch-x.txt": "(written by spectune)", "launch-latency.sh": "echo\n"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "launch-folder.sh").mkdir()
    assert export(tmp_path, PLAIN, CHAIN) > {*mine, "launch-folder.sh"}
    assert export(tmp_path) == {*mine, "launch-folder.sh"}


def test_what_does_not_run_as_asked_removes_nothing(tmp_path):
    before = export(tmp_path, CHAIN)
    with pytest.raises(SpectuneError):
        export(tmp_path, record(argv=("p", "x"), env={"a b": "c"}))
    assert {path.name for path in tmp_path.iterdir()} == before
