"""Profiles of varied studies against the machines these were made on: what a study says, its profile says again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import yaml
from forked import spectune
from readme_commands import ROOT

from spectune.calibration import Calibration, calibrate, check
from spectune.calibration.acceptance import expected_length
from spectune.calibration.cycle import told_apart
from spectune.calibration.observed import Observed, observed
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.profile import Profile, load_profile
from spectune.engines.simulated.under_load import under_load
from spectune.search import StudyFolder

PCIE, NVLINK, MOE = "kimi-k2.5-pcie", "llama-3.3-70b-nvlink", "qwen3-next-80b-a3b"
DRAFTER = "org/kimi-k2-eagle3-1.4m"
TREES: Mapping[str, Any] = {
    "speculative-algorithm": ["none", "EAGLE3"],
    "speculative-draft-model-path": [DRAFTER],
    "speculative-num-steps": {"from": 1, "to": 4},
    "speculative-eagle-topk": [1, 2, 4],
    "speculative-num-draft-tokens": {"from": 2, "to": 12},
}
CHAINS = {**TREES, "speculative-eagle-topk": [1]}
LOOKUP = {
    "speculative-algorithm": ["none", "NGRAM"],
    "speculative-eagle-topk": [1, 2],
    "speculative-num-draft-tokens": {"from": 2, "to": 9},
}
BOTH = {**TREES, "speculative-algorithm": ["none", "EAGLE3", "NGRAM"]}
NOTHING = {"env.NCCL_PROTO": ["unset", "LL"], "env.NCCL_ALGO": ["unset", "allreduce:ring", "allreduce:tree"]}
FAULTS = "\nfaults: [{when: {speculative-num-draft-tokens: '>9'}, at: capture, kind: oom}]\n"


@dataclass(frozen=True)
class Case:
    """A study to make, and what its profile has to say that it does not know."""

    profile: str
    search: Mapping[str, Any]
    levels: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    args: Mapping[str, Any] | None = None
    faults: str = ""


KV = "what the KV cache costs is not told apart from the rest of a cycle, and part of it"
ONE = "every level ran 1 request at once: speeds with more or fewer are a guess"
CASES = {
    "one-level": Case(PCIE, TREES, (1,), (ONE, KV)),
    "one-level-of-eight": Case(NVLINK, TREES, (8,), (KV, ONE.replace("1 request", "8 requests"))),
    "three-levels": Case(NVLINK, TREES, (1, 8, 32)),
    "chains": Case(MOE, CHAINS, (1, 8, 32), (KV.replace("the KV cache costs", "a token costs the drafter"),)),
    "lookup": Case(PCIE, LOOKUP, (1, 8), ("no draft model ran: draft is a placeholder",)),
    "drafter-and-lookup": Case(NVLINK, BOTH, (1, 8)),
    "baselines": Case(PCIE, NOTHING, (1, 8), ("nothing was drafted: draft and acceptance are placeholders",)),
    "failures": Case(MOE, TREES, (1, 8), faults=FAULTS),
    "no-graphs": Case(PCIE, TREES, (1, 8), args={"disable-cuda-graph": True}, unknown=(
        "no forward of the target ran as graph: it is taken to cost the same, or a prefill if that is less",)),
}  # fmt: skip


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def study(case: Case, tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    folder = tmp_path_factory.mktemp("truth")
    text = (ROOT / f"spectune/engines/simulated/profiles/{case.profile}.yaml").read_text("utf-8")
    (folder / "truth.yaml").write_text(text + case.faults)
    args = {"model-path": "org/model", "tp-size": 8, "max-running-requests": 64, **(case.args or {})}
    (folder / "space.yaml").write_text(yaml.safe_dump({
        "schema": 1, "name": "truth", "search": {"speculative-algorithm": ["none"], **case.search},
        "engine": {"kind": "simulated", "profile": "truth.yaml", "virtual": True, "gpus": 8, "args": args},
        "workload": {"prompts": "builtin:mixed", "output_tokens": 128, "level_time_limit": "20s",
                     "levels": [{"concurrency": level} for level in case.levels]},
        "budget": {"trials": 14},
    }))  # fmt: skip
    done = spectune("search", "space.yaml", "--sampler", "random", cwd=folder)
    found = StudyFolder(folder / "studies/truth")
    assert len(found.records()) > 4, done.stderr
    return found


@pytest.fixture(scope="module")
def fitted(study: StudyFolder) -> Calibration:
    return calibrate(study.records(), study.space(), study.environment(), name="again", study="truth")


def predicted(profile: Profile, one: Observed) -> float:
    """The throughput of a level without noise."""
    launch, length = SimulatedLaunch(profile, one.setup), expected_length(profile.file.acceptance, one)
    cycle = launch.cycle_ms(one.batch, one.kv_ktokens * 1000)
    return under_load(
        launch, one.batch, prompt_tokens=one.prompt_tokens, output_tokens=one.output_tokens, accept_length=length,
        cycle_ms=cycle,
    ).output_throughput  # fmt: skip


def test_baselines_and_speedups_are_the_machine_s_own(case: Case, study: StudyFolder, fitted: Calibration) -> None:
    points, profile, truth = observed(study.records(), study.space()), fitted.profile(), load_profile(case.profile)
    wrong = {(one.batch, one.candidate_id): predicted(profile, one) / predicted(truth, one) for one in points}
    plain = {one.batch: wrong[one.batch, one.candidate_id] for one in points if not one.setup.speculative}
    assert plain.keys() == set(case.levels)
    assert all(ratio == pytest.approx(1.0, abs=0.03) for ratio in plain.values())
    for one in points:
        if one.setup.speculative:
            assert wrong[one.batch, one.candidate_id] / plain[one.batch] == pytest.approx(1.0, abs=0.05)


def test_what_a_study_cannot_tell_is_said_and_not_fitted(case: Case, fitted: Calibration) -> None:
    assert set(case.unknown) <= set(fitted.assumed)
    hidden = fitted.cycle.seen - fitted.cycle.told
    assert all(fitted.cycle.coefficients[term] == 0.0 for term in hidden)
    if KV in case.unknown:
        assert fitted.profile().file.target.kv_ms_per_ktoken == 0.0


def test_baselines_are_left_out_too(case: Case, study: StudyFolder) -> None:
    errors, missing = check(study.records(), study.space(), study.environment())
    plain = [one for one in errors if one.figure == "decode_speed" and not one.speculative]
    assert {one.batch for one in plain} == set(case.levels)
    assert all(one.median < 0.05 for one in plain)
    assert not missing


def test_a_term_is_taken_up_where_it_varies_beside_the_others() -> None:
    ones, steps = np.ones(6), np.array([0.0, 1, 2, 3, 2, 1])
    jitter = 0.18 * (1.0 + 0.01 * np.array([1, -1, 1, -1, 1, -1]))
    assert told_apart(np.column_stack([ones, jitter, steps, 2 * steps + 3 * ones])) == [0, 2]
    assert told_apart(np.column_stack([0 * ones, ones, steps])) == [1, 2]
