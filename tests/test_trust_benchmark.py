"""The trust benchmark as it is called; what it finds is for whoever runs it with enough studies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forked import python_m
from readme_commands import ROOT

from benchmarks.truth import Truth, setups_of
from benchmarks.virtual_study import Laboratory
from spectune.analysis.measure import measure_level
from spectune.bench.arrivals import first_answer
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.profile import Profile, load_profile
from spectune.engines.simulated.profile_schema import Noise
from spectune.engines.simulated.virtual import ClosedLoop, VirtualEngine
from spectune.space import load_space

FIELDS = {"false_recommendation", "missed_winner", "coverage", "speedup_bias", "studies"}


def test_it_tells_fractions_per_profile_and_in_all(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    done = python_m(
        "benchmarks.verdicts", "--profile", "benchmarks/profiles/quiet-115.yaml",
        "--space", "benchmarks/trust_space.yaml", "--studies", "1", "--json", table, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    content = json.loads(table.read_text())
    assert content["total"].keys() == FIELDS
    (row,) = content["rows"]
    assert row.keys() == FIELDS | {"true_speedup", "profile"}
    assert row["true_speedup"] == pytest.approx(1.15, abs=0.001)
    assert (row["studies"], row["false_recommendation"], row["missed_winner"]) == (1, 0.0, 0.0)


def test_the_truth_is_what_a_long_run_without_noise_measures() -> None:
    space = load_space(ROOT / "benchmarks/trust_space.yaml")
    source = load_profile(str(ROOT / "benchmarks/profiles/quiet-115.yaml"))
    quiet = Profile(source.path, source.file.model_copy(update={"noise": Noise()}))
    laboratory = Laboratory(space, quiet)
    setups = setups_of(laboratory)
    truth = Truth(laboratory, dict(list(setups.items())[:-1]))
    prompts = laboratory.feed().ahead(96)
    lengths, classes = [len(prompt.input_ids) for prompt in prompts], [prompt.prompt.prompt_class for prompt in prompts]
    best = max((c for c in setups if c.speculative), key=truth.speedup)
    none = max((c for c in setups if not c.speculative), key=truth.speedup)
    found = {}
    for candidate in (best, none):
        launch = SimulatedLaunch(quiet, setups[candidate])
        firsts = tuple(first_answer(slot, 4, 256) for slot in range(4))
        loop = ClosedLoop(4, 480, round(sum(lengths) / len(lengths)), 256, tuple(classes), firsts)
        level = VirtualEngine(launch).serve(loop)
        measured = measure_level("c4", level.requests(), (5.0, float(level.request_ends_s.max()) - 10.0))
        expected = len(classes) / sum(1.0 / launch.accept_length(name, 276) for name in classes)
        found[candidate] = measured.decode_speed.est * expected / measured.accept_length.est  # but for the draws' luck
    assert found[best] / found[none] == pytest.approx(truth.speedup(best) / truth.speedup(none), rel=0.001)
