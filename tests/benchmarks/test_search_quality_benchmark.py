"""The benchmark of search quality as it is called, in a space of 200 candidates."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from forked import python_m
from readme_commands import ROOT

from benchmarks.search_quality import sure
from spectune.engines.simulated.profile import load_profile

SPACE = Path(__file__).with_name("quality_space.yaml")
KEYS = {
    "profile", "sampler", "median_launches_to_5pct", "median_launches_to_2pct", "median_launches_to_1pct", "solved",
    "score_at_10", "score_at_20", "score_at_40", "hypervolume_at_10", "hypervolume_at_20", "hypervolume_at_40",
    "failed_launches", "seconds_per_proposal", "stops", "median_stop", "false_stop_rate", "outdone_stop_rate",
    "unconfirmed_false_stop_rate",
}  # fmt: skip


def called(*options: str) -> subprocess.CompletedProcess[str]:
    return python_m("benchmarks.search_quality", "--space", SPACE, *options, cwd=ROOT)


def rows(*options: str) -> list[dict[str, Any]]:
    done = called(*options, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_options_repeat_and_take_several_values() -> None:
    found = rows("--profile", "llama-3.3-70b-nvlink", "--profile", "kimi-k2.5-pcie", "qwen3-next-80b-a3b",
                 "--samplers", "random", "--samplers", "qmc", "--seeds", "2", "--budget", "5")  # fmt: skip
    assert [(row["profile"], row["sampler"]) for row in found] == [
        (profile, sampler)
        for profile in ("llama-3.3-70b-nvlink", "kimi-k2.5-pcie", "qwen3-next-80b-a3b")
        for sampler in ("random", "qmc")
    ]


def test_the_guided_search_solves_a_small_space() -> None:
    guided, tpe = rows("--profile", "llama-3.3-70b-nvlink", "--seeds", "1", "--budget", "12")
    assert guided.keys() == tpe.keys() == KEYS
    assert guided["solved"] == 1
    assert guided["median_launches_to_5pct"] <= guided["median_launches_to_2pct"] <= 8
    assert 0.98 <= guided["score_at_20"] == guided["score_at_40"] <= 1.0
    assert 0.0 < guided["hypervolume_at_10"] <= guided["hypervolume_at_20"] <= 1.0
    assert guided["failed_launches"] == 0.0
    assert tpe["false_stop_rate"] is tpe["outdone_stop_rate"] is None, "it has no stop rule"
    assert (tpe["stops"], tpe["median_stop"]) == (0, None)
    assert guided["stops"] in {0, 1}


def test_drafters_may_be_sure_of_their_ranking() -> None:
    profile = load_profile("llama-3.3-70b-nvlink")
    tables = [sure(one).file.acceptance for one in (profile, sure(profile))]
    assert tables[0] == tables[1] == profile.file.acceptance.model_copy(update={"confidence": 1.0})
    options = ("--profile", "llama-3.3-70b-nvlink", "--samplers", "random", "--seeds", "1", "--budget", "5")
    assert rows(*options) != rows(*options, "--sure")


def test_what_is_never_reached_is_null() -> None:
    (row,) = rows("--profile", "llama-3.3-70b-nvlink", "--samplers", "tpe", "--seeds", "1", "--budget", "1")
    assert (row["median_launches_to_5pct"], row["solved"]) == (None, 0)


def test_random_worlds_fail_in_regions_and_share_a_row() -> None:
    worlds = ("--random-worlds", "2", "--samplers", "random", "--budget", "30")
    (row,), (other,) = rows(*worlds), rows(*worlds, "--first-world", "5")
    assert (row["profile"], row["sampler"]) == ("random worlds", "random")
    assert 0.0 < row["failed_launches"] < 30.0
    assert row["score_at_20"] != other["score_at_20"], "other machines"


def test_every_search_is_kept_launch_by_launch(tmp_path: Path) -> None:
    kept = tmp_path / "searches.jsonl"
    profile = ("--profile", "llama-3.3-70b-nvlink", "--samplers", "guided", "--budget", "9", "--searches", str(kept))
    alone = called(*profile, "--seeds", "1")
    study = called(*profile, "--seeds", "1", "--whole-plan")
    assert (alone.returncode, study.returncode) == (0, 0), alone.stderr + study.stderr
    assert "guided" in study.stdout
    first, second = map(json.loads, kept.read_text("utf-8").splitlines())
    assert len(first["scores"]) == len(second["scores"]) == 9
    for one in (first, second):
        assert (one["outdone"] is None) == (one["false_stop"] is None) == (one["stopped_after"] is None)
    assert first["scores"][:4] == second["scores"][:4], "the first launches are the same"
    assert first["volumes"] != second["volumes"], "a study also launches baselines"


def test_bad_input_is_one_message() -> None:
    for options, word in (
        (("--profile", "no-such-machine"), "no-such-machine"),
        (("--samplers", "magic"), "magic"),
        (("--seeds", "0"), "0"),
    ):
        done = called(*options)
        assert done.returncode == 2
        assert word in done.stderr
        assert "Traceback" not in done.stderr
