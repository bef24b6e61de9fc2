"""`spectune breakeven` on a study, as people type it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forked import spectune

from spectune.cli.break_even_table import _line

SPACE = """schema: 1
name: planned
engine: {kind: simulated, profile: kimi-k2.5-pcie, virtual: true, gpus: 8, args: {model-path: m, tp-size: 8,
  max-running-requests: 64, attention-backend: triton}}
search:
  speculative-algorithm: [none, EAGLE3]
  speculative-draft-model-path: [37k]
  speculative-num-steps: {from: 1, to: 4}
  speculative-eagle-topk: [1]
  speculative-num-draft-tokens: {from: 2, to: 5}
workload:
  {prompts: builtin:mixed, chat_template: false, output_tokens: 128, levels: [{concurrency: 1}, {concurrency: 8}]}
objectives: [{maximize: decode_speed, level: c1}]
targets: {decode_speed: [100, 120]}
budget: {trials: 9}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study on the machine of the field case, in virtual time."""
    found = tmp_path_factory.mktemp("planned")
    (found / "space.yaml").write_text(SPACE)
    done = spectune("search", "space.yaml", "--sampler", "grid", cwd=found)
    assert done.returncode in (0, 1), done.stderr
    return found


def chain_of_two(folder: Path) -> str:
    rows = json.loads((folder / "studies/planned/summary.json").read_text())["candidates"]
    return next(row["candidate_id"] for row in rows if row["num_steps"] == 2)


def test_the_field_case_is_retold_from_a_study(folder: Path) -> None:
    done = spectune("breakeven", "planned", "--candidate", chain_of_two(folder)[:8], cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].startswith("SIMULATED")
    for words in (
        "speculation does not pay: 27% slower than the best baseline",
        "120 tok/s needs an accept length of 3.9",
        "out of reach: 2 steps can give 3 at most",
        "the cycle: draft",
        "From no speculation to",
        "What to do next, cheapest first",
        "With another drafter, at c1",
        "With this drafter, at another load",
    ):
        assert words in done.stdout, words


def test_json_holds_the_same_object(folder: Path) -> None:
    done = spectune("breakeven", "planned", "--json", "--candidate", chain_of_two(folder), "--target", "70", cwd=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["simulated"] is True
    answer = told["break_even"]
    row = next(r for r in answer["rows"] if (r["num_steps"], r["level"], r["prompt_class"]) == (2, "c1", None))
    assert row["accept_length"][0] == pytest.approx(2.0, abs=0.1)
    assert row["break_even"][0] == pytest.approx(2.75, abs=0.1)
    assert row["cycle_ms"][0] == pytest.approx(33.3, rel=0.03)
    assert row["speedup"][0] - 1 == pytest.approx(-0.27, abs=0.04)
    assert row["bound"] == 3
    assert [one["target"] for one in row["needed"]] == [70.0]
    assert {r["prompt_class"] for r in answer["rows"]} == {None, "chat", "code", "math"}


def test_drafter_points_as_people_write_them(folder: Path) -> None:
    points = ["--drafter-points", "10000:1.9", "37000:2.0", "1400000:3.3", "--tokens-per-sample", "1000"]
    for arguments in (
        ["planned", *points],
        [*points, "planned"],
        ["planned", points[0], ",".join(points[1:4]), *points[4:]],
    ):
        done = spectune("breakeven", *arguments, "--json", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert [one["samples"] for one in json.loads(done.stdout)["training"]["points"]] == [10_000, 37_000, 1_400_000]
    wrong = spectune("breakeven", "planned", points[0], "many:2.0", *points[1:], cwd=folder)
    assert "a drafter point is SAMPLES:ACCEPT_LENGTH" in wrong.stderr
    assert "but got 'many:2.0'" in " ".join(wrong.stderr.split())
    told = spectune("breakeven", "planned", *points, cwd=folder).stdout
    assert "training samples" in told
    assert "hours of this engine" in told


def test_a_candidate_is_named_by_its_label_too(folder: Path) -> None:
    told = spectune("breakeven", "planned", "--candidate", chain_of_two(folder), cwd=folder).stdout
    label = next(line for line in told.splitlines() if " at " in line).rpartition(" at ")[0]
    assert spectune("breakeven", "planned", "--candidate", label, cwd=folder).stdout == told
    assert spectune("breakeven", "planned", "--candidate", "2,1,3", cwd=folder).stdout == told, "words no other has"
    part = spectune("breakeven", "planned", "--candidate", ",1,3", cwd=folder).stdout
    assert part == told, "a part of one label"
    for named, fits in (("zzz", "fits none"), ("EAGLE3", "fits 4 of them")):
        wrong = spectune("breakeven", "planned", "--candidate", named, cwd=folder)
        assert f"but {named!r} {fits}; candidates with speculation:\n" in wrong.stderr
        assert f"\n  {label} ({chain_of_two(folder)})\n" in wrong.stderr, "each in a line of its own"


def test_cells_of_the_table_do_not_run_together() -> None:
    line = _line("c1", "code", "2.04 (not known how exactly)", "", "4", "1.05", "", "", "", "", "", "")
    assert line.split("2.04")[0].endswith("code ")


def test_measuring_prints_how_far_off_the_prediction_is(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "studies", tmp_path / "studies")
    done = spectune("breakeven", "planned", "--measure", "--json", "--candidate", chain_of_two(folder), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [run["forced"] for run in told["levels"]] == [1, 1, 2, 2, 3, 3]
    assert told["worst"] < 0.04
    table = spectune("breakeven", "planned", "--measure", "--candidate", chain_of_two(folder), cwd=tmp_path)
    assert "never scored or exported" in table.stdout
    assert "made to accept 3 tokens" in table.stderr
    assert "suspect" not in table.stderr
    assert sorted(p.name for p in (tmp_path / "studies/planned/trials").iterdir()) == sorted(
        p.name for p in (folder / "studies/planned/trials").iterdir()
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "or figures: --baseline, --accept, and --cycle-ms or --speed"),
        (["--baseline", "82", "--cycle-ms", "30"], "or figures: --baseline, --accept, and --cycle-ms or --speed"),
        (["--measure", "--baseline", "82", "--cycle-ms", "30", "--accept", "2"], "are about a STUDY: name one"),
        (["planned", "--space", "space.yaml"], "--space says where the prompts of --measure lie"),
        (["planned", "--baseline", "82"], "either a STUDY or figures"),
        (["planned", "other"], "takes one study, but got 'planned', 'other'"),
        (["nothere"], "there is no study nothere"),
        (["planned", "--candidate", "zzz"], "candidates with speculation:"),
        (["planned", "--candidate", ""], "candidates with speculation:"),
        (["planned", "--target", "-1"], "target (tok/s) must be a positive number, but got -1"),
        (["planned", "--drafter-points", "10000:1.9"], "--tokens-per-sample N go together"),
        (["planned", "--tokens-per-sample", "9"], "--tokens-per-sample N go together"),
        (["planned", "--drafter-points", "1:2", "--tokens-per-sample", "0"], "must be from 1 to 10,000,000, but got 0"),
        (["planned", "--drafter-points", "1000:1.9", "--tokens-per-sample", "9"], "two different numbers of samples"),
        (["planned", "--drafter-points", "many", "--tokens-per-sample", "9"], "but got 'many'"),
        (["planned", "--drafter-points", "１0:2.5", "--tokens-per-sample", "9"], "but got '１0:2.5'"),
        (["planned", "--drafter-points", "10:0.5,1e3:2", "--tokens-per-sample", "9"], "but got '1e3:2'"),
        (["planned", "--drafter-points", "0:2 5:nan", "--tokens-per-sample", "9"], "but got '5:nan'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_message(folder: Path, arguments: list[str], words: str) -> None:
    done = spectune("breakeven", *arguments, cwd=folder)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("words", [("--measured", "60"), ("--measure", "60"), ("--measure=60",)])
@pytest.mark.parametrize("given", [("planned",), ("--baseline", "82", "--cycle-ms", "30", "--accept", "2")])
def test_the_old_name_of_speed_and_what_is_suggested_for_it_launch_nothing(
    folder: Path, given: tuple[str, ...], words: tuple[str, ...]
) -> None:
    done = spectune("breakeven", *given, *words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_study_without_a_baseline_ends_with_one(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "studies", tmp_path / "studies")
    for trial in (tmp_path / "studies/planned/trials").iterdir():
        if json.loads((trial / "result.json").read_text())["values"]["speculative-algorithm"] == "none":
            shutil.rmtree(trial)
    done = spectune("breakeven", "planned", cwd=tmp_path)
    assert done.returncode == 1
    assert "no baseline is finished" in done.stdout
    told = spectune("breakeven", "planned", "--json", cwd=tmp_path)
    assert told.returncode == 1
    assert json.loads(told.stdout)["break_even"]["missing"]


def test_a_half_written_study_is_borne_and_a_damaged_one_said(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "studies", tmp_path / "studies")
    trials = sorted((tmp_path / "studies/planned/trials").iterdir())
    (trials[-1] / "result.json").unlink()
    (tmp_path / "studies/planned/summary.json").write_text("{")
    assert spectune("breakeven", "planned", cwd=tmp_path).returncode == 0
    (trials[1] / "result.json").write_text('{"schema": 1')
    done = spectune("breakeven", "planned", cwd=tmp_path)
    assert done.returncode == 2
    assert "result.json" in done.stderr
    shutil.rmtree(tmp_path / "studies/planned/trials")
    done = spectune("breakeven", "planned", cwd=tmp_path)
    assert done.returncode == 1
    assert "no launch is finished yet" in done.stdout


def test_without_a_cycle_it_follows_from_the_speed(folder: Path) -> None:
    done = spectune("breakeven", "--baseline", "82", "--accept", "2", "--speed", "60", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "break-even: 82 tok/s × 33.33 ms = accept length 2.73" in done.stdout


def test_three_figures_say_what_would_pay_and_what_to_do_next(folder: Path) -> None:
    figures = ("breakeven", "--baseline", "82", "--cycle-ms", "30", "--accept", "2.0")
    lines = spectune(*figures, cwd=folder).stdout.splitlines()
    assert lines[3] == "at accept length 2 any cycle below 24.4 ms pays"
    begin = lines.index("what to do next:")
    assert [line[:5] for line in lines[begin + 1 :]] == ["  1. ", "  2. ", "  3. ", "  4. "]
    told = json.loads(spectune(*figures, "--steps", "2", "--json", cwd=folder).stdout)
    assert told["break_even"] == pytest.approx(2.46)
    assert told["break_even_cycle_ms"] == pytest.approx(2000 / 82)
    assert told["bound"] == 3
    assert told["next_steps"][0] == "try a drafter that accepts more than 2.46 of 3 possible on this traffic"


def test_figures_alone_load_no_heavy_library() -> None:
    program = """
import sys
sys.argv = "spectune breakeven --baseline 82 --cycle-ms 30 --accept 2".split()
from spectune.cli.app import main
try:
    main()
finally:
    assert not {"numpy", "scipy", "aiohttp", "optuna"} & set(sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, stdout=subprocess.DEVNULL).returncode == 0
