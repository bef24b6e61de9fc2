"""A profile fitted to a study of a known machine: it finds the machine again, and predicts what it has not seen."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from forked import spectune
from readme_commands import ROOT

from spectune.analysis.estimate import Estimate
from spectune.calibration import Calibration, Checked, calibrate, check, unfit
from spectune.calibration import cycle as terms
from spectune.engines.simulated.profile import load_profile, parse_profile
from spectune.search import StudyFolder, TrialRecord
from spectune.search.guided.branching import USUAL
from spectune.space import DRAFTER, EAGLE_TOPK

PROFILE = "llama-3.3-70b-nvlink"
UNSURE, SURE = "confidence: 0.49", "confidence: 1.0"


def made(folder: Path, trees: str) -> Path:
    """A folder with a study of 24 launches on a profile with a small effect added, and drafters as they are wanted."""
    text = (ROOT / f"spectune/engines/simulated/profiles/{PROFILE}.yaml").read_text("utf-8")
    assert UNSURE in text
    text = text.replace(UNSURE, trees) + "\neffects: [{when: {env.NCCL_PROTO: LL}, cycle: 1.08}]\n"
    (folder / "truth.yaml").write_text(text)
    done = spectune(
        "search", "eagle3", "--engine", "simulated", "--profile", "truth.yaml", "--virtual", "--study", "made",
        "--trials", "24", "--sampler", "random", cwd=folder,
    )  # fmt: skip
    assert (folder / "studies/made/summary.json").is_file(), done.stderr
    return folder


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of drafters that rank their branches as measured ones do."""
    return made(tmp_path_factory.mktemp("calibrated"), UNSURE)


@pytest.fixture(scope="module")
def studied_sure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of drafters that know which branch is the best."""
    return made(tmp_path_factory.mktemp("sure"), SURE)


def test_the_machine_is_found_again(studied: Path) -> None:
    study = StudyFolder(studied / "studies/made")
    fitted = calibrate(study.records(), study.space(), study.environment(), name="again", study="made").profile().file
    truth = load_profile(PROFILE).file
    step = truth.target.step_ms.graph + truth.host_ms
    assert fitted.target.step_ms.graph + fitted.host_ms == pytest.approx(step, rel=0.03)
    assert fitted.draft.step_ms.graph == pytest.approx(truth.draft.step_ms.graph, rel=0.15)
    assert fitted.target.token_ms == pytest.approx(truth.target.token_ms, rel=0.25)
    shape = next(iter(fitted.acceptance.drafters.values()))
    factor = sum(truth.acceptance.by_class[name] for name in ("code", "chat", "math")) / 3
    assert shape[0] == pytest.approx(truth.acceptance.default[0] * factor, abs=0.03)
    (effect,) = [one for one in fitted.effects if "env.NCCL_PROTO" in one.when]
    assert effect.cycle == pytest.approx({"LL": 1.08}.get(str(effect.when["env.NCCL_PROTO"]), 1 / 1.08), abs=0.02)


def test_what_was_left_out_is_predicted(studied: Path) -> None:
    study = StudyFolder(studied / "studies/made")
    errors, _ = check(study.records(), study.space(), study.environment())
    speeds = [one for one in errors if one.figure == "decode_speed"]
    assert {one.batch for one in speeds} == {1, 8, 32}
    assert all(one.median < 0.03 and abs(one.bias) < 0.03 for one in speeds)


def test_a_baseline_launched_once_cannot_be_checked(studied: Path) -> None:
    study = StudyFolder(studied / "studies/made")
    _, *others = [one for one in study.records() if not one.candidate.speculative]
    errors, missing = check([one for one in study.records() if one not in others], study.space(), study.environment())
    assert missing == ["no speculation"]
    assert errors
    assert all(one.speculative for one in errors)


def test_a_forward_that_costs_nothing_was_seen_all_the_same(studied: Path) -> None:
    study = StudyFolder(studied / "studies/made")
    fitted = calibrate(study.records(), study.space(), study.environment(), name="again", study="made")
    seen = frozenset({terms.TARGET_GRAPH, terms.TARGET_EAGER})
    free = replace(fitted, cycle=replace(fitted.cycle, seen=seen, coefficients=(0.0, 20.0, *[0.0] * 7)))
    step = free.profile().file.target.step_ms
    assert step.eager == 20.0
    assert step.graph < 0.01


def test_how_sure_the_drafters_are_is_found_again(studied: Path, studied_sure: Path) -> None:
    for folder, expected in ((studied, 0.49), (studied_sure, 1.0)):
        study = StudyFolder(folder / "studies/made")
        fitted = calibrate(study.records(), study.space(), study.environment(), name="again", study="made")
        table = fitted.profile().file.acceptance
        assert table.trees.keys() == table.drafters.keys(), "a tree of each was launched"
        for trees in table.trees.values():
            assert trees.confidence == pytest.approx(expected, rel=0.2)
            assert trees.breadth == pytest.approx(0.35, rel=0.15)
        assert not any("tree" in line for line in fitted.assumed)


def test_sure_drafters_are_predicted_as_well(studied_sure: Path) -> None:
    study = StudyFolder(studied_sure / "studies/made")
    errors, _ = check(study.records(), study.space(), study.environment())
    assert all(one.median < 0.02 for one in errors if one.figure == "accept_length")


def test_drafters_without_a_tree_are_named(studied: Path) -> None:
    study = StudyFolder(studied / "studies/made")
    space, environment = study.space(), study.environment()

    def fit(*, but: str | None = None) -> Calibration:
        kept = [one for one in study.records() if one.candidate.values.get(EAGLE_TOPK, 1) == 1
                or one.candidate.values.get(DRAFTER) == but]  # fmt: skip
        return calibrate(kept, space, environment, name="n", study="s")

    without, one_alone = fit(), fit(but="org/kimi-k2-eagle3-1.4m")
    table = without.profile().file.acceptance
    assert (table.breadth, table.confidence, table.trees) == (USUAL.breadth, USUAL.confidence, {})
    said = "no tree of org/kimi-k2.5-eagle3-37k was measured: breadth and confidence are those of the others"
    assert said in one_alone.assumed
    assert any(line.endswith("those of EAGLE-3 drafters elsewhere, as is usual") for line in without.assumed)


def test_the_command_writes_a_profile_that_can_be_searched(studied: Path) -> None:
    done = spectune("calibrate", "made", "-o", "fitted.yaml", cwd=studied)
    assert done.returncode == 0, done.stderr
    assert "SIMULATED launches" in done.stdout
    assert "SIMULATED study" in yaml.safe_load((studied / "fitted.yaml").read_text())["source"]
    again = spectune("calibrate", "made", "-o", "fitted.yaml", cwd=studied)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    search = spectune(
        "search", "eagle3", "--engine", "simulated", "--profile", "fitted.yaml", "--virtual", "--trials", "9",
        "--study", "next", cwd=studied,
    )  # fmt: skip
    assert search.returncode in (0, 1), search.stderr
    assert (studied / "studies/next/summary.json").is_file()


def test_json_has_the_errors(studied: Path) -> None:
    told: dict[str, Any] = json.loads(spectune("calibrate", "made", "-o", "j.yaml", "--json", cwd=studied).stdout)
    assert told["simulated"] is True
    assert {"figure", "batch", "speculative", "candidates", "median", "p90", "bias"} == set(told["errors"][0])
    assert parse_profile((studied / "j.yaml").read_text(), Path("j.yaml")).name == "j"  # as the file, not as the study


def test_a_profile_that_predicts_badly_is_said_to() -> None:
    good = Checked("decode_speed", 1, True, 9, median=0.1, p90=0.2, bias=0.0)
    assert unfit([good, Checked("cycle_ms", 8, True, 9, median=0.5, p90=0.6, bias=0.0)]) is None
    said = unfit([good, Checked("decode_speed", 8, True, 9, median=0.23, p90=0.3, bias=0.1)])
    assert said is not None
    assert said.startswith("with 8 requests it predicts speeds 23% off (median)")
    assert unfit([]) == "how well it predicts is not known"


def test_a_study_that_says_too_little_is_refused(studied: Path, tmp_path: Path) -> None:
    shutil.copytree(studied / "studies/made", tmp_path / "studies/made")
    trials = sorted((tmp_path / "studies/made/trials").iterdir())
    for folder in trials[2:]:
        shutil.rmtree(folder)
    done = spectune("calibrate", "made", cwd=tmp_path)
    assert done.returncode == 2
    assert "a profile needs 4" in done.stderr
    assert "Traceback" not in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["studies"]


def test_levels_that_cannot_be_are_left_out(studied: Path) -> None:
    study = StudyFolder(studied / "studies/made")
    records, space, environment = study.records(), study.space(), study.environment()
    index = next(index for index, one in enumerate(records) if one.candidate.speculative and one.levels)

    def changed(**values: Any) -> list[TrialRecord]:
        levels = tuple(replace(level, **values) for level in records[index].levels)
        return [*records[:index], replace(records[index], levels=levels), *records[index + 1 :]]

    without = calibrate(changed(decode_cycle_ms=None, cycle_ms=Estimate(0.0, 0.0, 0.0)), space, environment,
                        name="n", study="s")  # fmt: skip
    for cycle in (1e-300, 1e308):
        told = changed(decode_cycle_ms=Estimate(cycle, cycle, cycle))
        assert calibrate(told, space, environment, name="n", study="s") == without
    calibrate(changed(requests_by_class={"code": 0}), space, environment, name="n", study="s").profile()
