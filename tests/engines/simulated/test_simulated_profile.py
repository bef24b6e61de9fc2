"""Profile files: every key, every kind of mistake, the shipped ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from simulated_samples import PLAIN, a_profile

from spectune.engines.simulated.profile import load_profile, parse_profile, shipped_profiles
from spectune.engines.simulated.randomness import Pace
from spectune.errors import InputProblems, SpectuneError

FULL = """\
schema: 1
name: full
source: every key of the page
seed: 0
gpu: {count: 8, memory_gb: 96}
target:
  weights_gb: 595
  step_ms: {graph: 10.92, eager: 29.0}
  token_ms: 0.29
  knee_tokens: 256
  knee_factor: 3.0
  kv_ms_per_ktoken: 0.02
  kv_mb_per_token: 0.07
  prefill_ktok_per_s: 12
  moe: {experts: 384, active: 8, expert_ms: 0.0}
  verify_graph: true
draft:
  weights_gb: 3
  step_ms: {graph: 1.24, eager: 1.24}
  token_ms: 0.01
  graph: true
host_ms: 1.2
acceptance:
  default: [0.63, 0.587, 0.45, 0.38, 0.33, 0.30]
  drafters: {org/drafter-b: [0.80, 0.74, 0.70, 0.66, 0.62, 0.60, 0.58]}
  breadth: 0.35
  by_class: {code: 1.10, chat: 1.0, math: 1.05, random: 0.25}
  context_halving_ktokens: 0
graphs: {mb_per_token: 0.5, reserve_gb: 2}
startup: {load_s: 3.0, capture_s_per_graph: 0.02}
noise: {launch_sd: 0.008, window_sd: 0.010, drift_per_hour: 0.0, jumps: [{at_hour: 1.5, cycle: 1.08}],
        first_requests_slow: {requests: 4, factor: 3.0}}
effects:
  - {when: {decode-attention-backend: triton, speculative-eagle-topk: ">1"}, cycle: 1.06}
  - {when: {env.NCCL_PROTO: LL}, cycle: 0.97}
faults:
  - {when: {cuda-graph-max-bs-decode: ">64", speculative-num-draft-tokens: ">24"}, at: capture, kind: oom}
  - {when: {launch: 3}, at: bench, kind: hang, times: 1}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(InputProblems) as caught:
        parse_profile(text, Path("p.yaml"))
    return [str(problem) for problem in caught.value.problems]


def test_the_page_s_example_loads_with_every_value() -> None:
    file = parse_profile(FULL, Path("p.yaml")).file
    assert file.target.moe is not None
    assert file.target.knee_factor == 3.0
    assert file.noise.jumps[0].cycle == 1.08
    assert file.faults[1].times == 1
    assert file.acceptance.drafters["org/drafter-b"][-1] == 0.58


def test_left_out_keys_have_the_page_s_defaults() -> None:
    file = a_profile().file
    assert (file.target.knee_tokens, file.target.knee_factor, file.target.kv_ms_per_ktoken) == (None, 1.0, 0.0)
    assert (file.target.moe, file.target.verify_graph, file.draft.graph) == (None, True, True)
    assert (file.acceptance.breadth, file.acceptance.by_class, file.acceptance.context_halving_ktokens) == (0.35, {}, 0)
    assert (file.acceptance.confidence, file.acceptance.trees) == (1.0, {})
    assert (file.graphs.mb_per_token, file.graphs.reserve_gb) == (0.5, 2.0)
    assert file.faults == file.effects == ()


def test_all_mistakes_are_told_at_once_with_their_lines() -> None:
    text = (
        FULL.replace("seed: 0\n", "")
        .replace("memory_gb: 96", "memory_gb: -96")
        .replace("token_ms: 0.29", "token_ms: .nan")
    )
    text = (
        text.replace("verify_graph", "verify_graf")
        .replace("active: 8", "active: 999")
        .replace("at: bench", "at: lunch")
    )
    text = text.replace("env.NCCL_PROTO: LL", "nccl-prato: LL").replace('">64"', '">many"')
    found = problems(text)
    for line, part in (
        (4, "gpu.memory_gb must be at least 1.0, but got -96"),
        (8, "token_ms must be finite"),
        (14, "active experts (999) cannot be more than there are (384)"),
        (15, "unknown key 'verify_graf' in target; did you mean 'verify_graph'?"),
        (34, "unknown key 'nccl-prato' in a condition"),
        (36, "orders by 'many', which is not a number"),
        (37, "at must be"),
    ):
        assert any(problem.startswith(f"p.yaml:{line}: ") and part in problem for problem in found), (part, found)
    assert any("'seed' is missing" in problem for problem in found)
    assert len(found) == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("knee_tokens: 256", "knee_tokens: 0", "must be at least 1"),
        ("  knee_tokens: 256\n", "", "means nothing without knee_tokens"),
        ("[0.63, 0.587", "[1.63, 0.587", "at most 1"),
        ("default: [0.63, 0.587, 0.45, 0.38, 0.33, 0.30]", "default: []", "must not be empty"),
        ("  breadth: 0.35", "  confidence: 1.2", "acceptance.confidence must be at most 1, but got 1.2"),
        ("  breadth: 0.35", "  confidence: .nan", "acceptance.confidence must be"),
        ("  breadth: 0.35", "  trees: {org/drafter-b: {confidence: 0}}", "confidence must be at least 0.01, but got 0"),
        ("  breadth: 0.35", "  trees: {org/drafter-b: {sureness: 1}}", "unknown key 'sureness' in acceptance.trees"),
        ("  breadth: 0.35", "  trees: {org/drafter: {breadth: 0.3}}", "'org/drafter' has no positions in acceptance"),
        ("kind: hang, times: 1", "kind: hang, times: 0", "must be at least 1"),
        ("kind: hang", "kind: partial_failure", "needs the share"),
        ("kind: hang", "share: 0.5, kind: hang", "share belongs to partial_failure"),
        ("{launch: 3}", "{speculation: maybe}", "speculation must be true or false"),
        ("schema: 1", "schema: 2", "newer than what this spectune reads"),
        ("drift_per_hour: 0.0", "drift_per_hour: .inf", "must be finite"),
        ("seed: 0", "seed: 1.5", "whole number"),
        ("graph: 10.92", "graph: 1.0e+308", "target.step_ms.graph must be at most 60,000, but got 1e+308"),
        ("token_ms: 0.29", "token_ms: 1.0e+308", "target.token_ms must be at most 60,000"),
        ("launch_sd: 0.008", "launch_sd: 300", "noise.launch_sd must be at most 1"),
        ("{requests: 4, factor: 3.0}", "{requests: 1000000000, factor: 3.0}", "requests must be at most 10,000"),
        ("{requests: 4, factor: 3.0}", "{requests: 4, factor: 1.0e+6}", "factor must be at most 100"),
        ("count: 8", "count: 100000000", "gpu.count must be at most 1,024"),
        ("kv_mb_per_token: 0.07", "kv_mb_per_token: 1.0e-300", "kv_mb_per_token must be at least 0.0001"),
        ("cycle: 0.97", "cycle: 1.0e-9", "effects[1].cycle must be at least 0.01"),
        ("drift_per_hour: 0.0", "drift_per_hour: 1.0e+9", "drift_per_hour must be at most 1"),
        ("jumps: [", "jumps: [{at_hour: 1, cycle: 90.0}, {at_hour: 2, cycle: 90.0}, ", "all jumps together"),
        ("{launch: 3}", "{launch: x}", "launch must be the number of a launch, from 0 on, or compare with one"),
        ("{launch: 3}", "{launch: -3}", "launch must be the number of a launch"),
        ("{launch: 3}", "{launch: [1, true]}", "launch must be the number of a launch"),
        ("{launch: 3}", '{launch: ">=-1"}', "launch must be the number of a launch"),
        ("{launch: 3}", "{launch: unset}", "launch must be the number of a launch"),
    ],
)
def test_single_mistakes(old: str, new: str, message: str) -> None:
    assert old in FULL
    found = problems(FULL.replace(old, new))
    assert len(found) == 1
    assert message in found[0]


def test_a_cycle_takes_time() -> None:
    text = FULL.replace("graph: 10.92, eager: 29.0", "graph: 0, eager: 29").replace("host_ms: 1.2", "host_ms: 0")
    (found,) = problems(text)
    assert "host_ms and target.step_ms must be at least 0.001 ms together" in found


def test_many_effects_do_not_multiply_without_bounds() -> None:
    many = "effects:\n" + "  - {when: {env.NCCL_PROTO: LL}, cycle: 50}\n" * 3
    (found,) = problems(FULL.replace("effects:\n", many))
    assert "all effects together must not change the cycle by a factor of more than 1000" in found


def test_a_drift_ends_somewhere() -> None:
    noise = a_profile(noise={"drift_per_hour": 1.0}).file.noise
    assert Pace(noise, 0, 0, 1e6).factor(0) == 1000.0


def test_launches_may_be_compared() -> None:
    for text in ('">2"', "[1, 2]", '"!=0"'):
        assert parse_profile(FULL.replace("{launch: 3}", f"{{launch: {text}}}"), Path("p.yaml")).faults


@pytest.mark.parametrize("key", ["name", "source", "gpu", "target", "draft", "host_ms", "acceptance", "startup"])
def test_a_required_key_is_missed(key: str) -> None:
    text = yaml.safe_dump({name: value for name, value in PLAIN.items() if name != key}, sort_keys=False)
    assert any(f"'{key}' is missing" in problem for problem in problems(text))


def test_names_and_files(tmp_path: Path) -> None:
    assert {"kimi-k2.5-pcie", "kimi-k2.5-pcie-first-boot"} < set(shipped_profiles())
    for name in shipped_profiles():
        profile = load_profile(name)
        assert profile.name == name
        assert "Assumed" in profile.file.source
    file = tmp_path / "own.yaml"
    file.write_text(FULL)
    assert load_profile(file).name == "full"
    with pytest.raises(SpectuneError, match="is a folder; name a profile's file in it"):
        load_profile(tmp_path)
    with pytest.raises(SpectuneError, match="'/dev/zero' is a device, pipe or socket"):
        load_profile("/dev/zero")
    with pytest.raises(SpectuneError, match=r"did you mean 'kimi-k2\.5-pcie'"):
        load_profile("kimi-k2.5-pci")
