"""The preflight as users meet it: `spectune explain`, `search` and its dry run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forked import spectune

from spectune.cli.explaining import explain
from spectune.engines.cpu_reference.runtime import Runtime
from spectune.engines.open import Simulation, load_checked_space, open_engine
from spectune.engines.preflight import SpacePreflight, preflight_of
from spectune.engines.sglang.preflight import Checkpoint, preflight
from spectune.search.guided.enumeration import census, legal_candidates

TARGET = {"architectures": ["LlamaForCausalLM"], "hidden_size": 16, "num_hidden_layers": 8, "vocab_size": 64}
EAGLE3 = {**TARGET, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32}
SPACE = """\
schema: 1
name: made
engine: {{python: no-such-python, gpus: 8, {more}args: {{model-path: ./target}}}}
search:
  speculative-algorithm: [none, {algorithms}]
  speculative-draft-model-path:
    - ./good
    - ./bad
  speculative-num-steps: [1, 3]
  speculative-eagle-topk: 1
  env.NCCL_PROTO: [unset, LL]
workload: {{prompts: builtin:tiny, levels: [{{concurrency: 1}}]}}
objectives: [{{maximize: decode_speed, level: c1}}]
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    wrong = {**EAGLE3, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 9]}}
    for name, config in (("target", TARGET), ("good", EAGLE3), ("bad", wrong)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opened(folder: Path, algorithms: str, more: str = "") -> Any:
    (file := folder / "made.yaml").write_text(SPACE.format(algorithms=algorithms, more=more))
    space = load_checked_space(str(file))
    return space, open_engine(space)


def test_explain_shows_it_from_the_configs_alone(models: Path) -> None:
    command = (
        "sglang serve --model-path ./target --speculative-draft-model-path ./bad --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --speculative-algorithm "
    )
    found = {one.rule: one for one in explain(command + "EAGLE3", gpu="h100", cwd=models, environ={}).findings}
    assert found["fusion-layers"].severity == "fatal"
    assert found["draft-weights-missing"].severity == "info"
    wrong = explain(command + "EAGLE", gpu="h100", cwd=models, environ={})
    assert wrong.exit_code == 1
    assert "eagle3-drafter-under-eagle" in {one["rule"] for one in wrong.to_json()["findings"]}
    printed = spectune("explain", "--gpu", "h100", "--", *(command + "EAGLE").split(), cwd=models)
    assert printed.returncode == 1
    assert "way out: --speculative-algorithm EAGLE3" in printed.stdout


def test_a_hub_name_that_is_not_here_is_one_line(models: Path) -> None:
    command = "sglang serve --model-path ./target --speculative-algorithm EAGLE3 --speculative-draft-model-path org/d"
    found = explain(command, gpu="h100", cwd=models, environ={"HF_HOME": str(models)}).findings
    assert [one.rule for one in found if "org/d" in one.message] == ["model-unknown"]


def test_a_search_never_launches_what_cannot_work(models: Path) -> None:
    space, engine = opened(models, "EAGLE3")
    said = preflight_of(space, engine)
    assert said.problems == ()
    assert len(said.notes) == 1
    assert said.notes[0].startswith("never launched: ./bad: it reads layers [9]")
    launched = list(legal_candidates(space, engine))
    assert {c.arguments.get("speculative-draft-model-path") for c in launched} == {None, "./good"}
    assert census(space, engine).excluded == {"fusion-layers": 4}
    assert census(space, engine).candidates == len(launched)
    judged = {engine.canonical(dict(values)) in launched for branch in space.branches for values in branch.assignments()
              if values.get("speculative-draft-model-path") != "./bad"}  # fmt: skip
    assert judged == {True}


def test_what_every_launch_shares_is_judged_too(models: Path) -> None:
    space, engine = opened(models, "EAGLE3")
    engine = replace(engine, fixed={**engine.fixed, "speculative-adaptive": True})  # S and N are judged with the rest
    assert {c.arguments.get("speculative-draft-model-path") for c in legal_candidates(space, engine)} == {
        None,
        "./good",
    }


@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_a_search_ends_where_no_drafter_can_work(models: Path, dry: list[str]) -> None:
    opened(models, "EAGLE")
    ended = spectune("search", "made.yaml", *dry, cwd=models)
    assert ended.returncode == 2
    assert "made.yaml:5: ./good (LlamaForCausalLMEagle3) is an EAGLE-3 drafter" in ended.stderr
    assert "; set speculative-algorithm EAGLE3" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_ngram_keeps_a_search_alive(models: Path) -> None:
    said = preflight_of(*opened(models, "EAGLE, NGRAM"))
    assert said.problems == ()
    assert len(said.notes) == 2


def test_a_broken_target_ends_a_search_at_its_own_line(models: Path) -> None:
    (models / "target/model.safetensors").write_bytes(b"half")
    first = preflight_of(*opened(models, "EAGLE3")).problems[0]
    assert first.line == 3
    assert "model.safetensors has 4 bytes" in first.message


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (None, "config.json does not exist"),
        ("{", "config.json:1"),
        ("[" * 100_000, "nested too deeply"),
        ('{"architectures": []}', "architectures must be a list of names"),
    ],
)
def test_a_drafter_without_a_usable_config(models: Path, config: str | None, says: str) -> None:
    (models / "bad/config.json").unlink()
    if config is not None:
        (models / "bad/config.json").write_text(config)
    space, engine = opened(models, "EAGLE3")
    said = preflight_of(space, engine)
    assert said.problems == ()
    assert len(said.notes) == 1
    assert says in said.notes[0]
    launched = {c.arguments.get("speculative-draft-model-path") for c in legal_candidates(space, engine)}
    assert ("./bad" in launched) == (config == '{"architectures": []}')


def test_a_target_without_a_usable_config(models: Path) -> None:
    (models / "target/config.json").write_text("{")
    said = preflight_of(*opened(models, "EAGLE3, NGRAM"))
    assert [one.line for one in said.problems] == [3]


def test_a_space_can_do_without(models: Path) -> None:
    space, engine = opened(models, "EAGLE", more="preflight: false, ")
    assert preflight_of(space, engine).notes == ()
    assert {c.arguments.get("speculative-draft-model-path") for c in legal_candidates(space, engine)} == {
        None, "./good", "./bad"
    }  # fmt: skip


def test_a_simulated_engine_looks_at_no_files(models: Path) -> None:
    opened(models, "EAGLE")
    space = load_checked_space("made.yaml", Simulation())
    engine = open_engine(space)
    assert preflight_of(space, engine) == SpacePreflight()
    assert any(candidate.speculative for candidate in legal_candidates(space, engine))


def test_the_quickstart_raises_no_alarm(cpu_runtime: Runtime) -> None:
    space = load_checked_space("quickstart")
    said = preflight_of(space, open_engine(space))
    assert (said.problems, said.notes) == ((), ())


@pytest.mark.parametrize(
    ("drafter", "algorithm"),
    [("drafter-strong", "EAGLE3"), ("drafter-weak", "EAGLE3"), ("drafter-standalone", "STANDALONE")],
)
def test_models_that_are_known_to_work_raise_no_alarm(cpu_runtime: Runtime, drafter: str, algorithm: str) -> None:
    target, draft = (Checkpoint.in_folder(cpu_runtime.models / name) for name in ("target", drafter))
    assert draft.weights.tensors
    assert preflight(target, draft, algorithm=algorithm, longest_request=2048) == []


@pytest.mark.parametrize(("algorithm", "would_fail"), [("EAGLE3", False), ("EAGLE", True)])
def test_doctor_shows_what_a_search_would_meet(models: Path, algorithm: str, *, would_fail: bool) -> None:
    """sglang#21272 before anything is launched: EAGLE with EAGLE-3 drafters only cannot work; one bad drafter can."""
    opened(models, algorithm)
    told = json.loads(spectune("doctor", "made.yaml", "--json", cwd=models).stdout)
    fatal = [one["seen"] for one in told["findings"] if one["name"] == "drafter" and one["severity"] == "fatal"]
    assert any("set speculative-algorithm EAGLE3" in seen and "made.yaml:5" in seen for seen in fatal) == would_fail
    said = [one["seen"] for one in told["findings"] if one["name"] == "space"]
    assert any(seen.startswith("never launched: ") and "bad" in seen for seen in said) != would_fail


@pytest.mark.parametrize("algorithms", ["EAGLE3", "STANDALONE", "NGRAM"])
def test_a_drafter_as_the_model_is_refused_whatever_drafts(models: Path, algorithms: str) -> None:
    text = SPACE.format(algorithms=algorithms, more="").replace("./target", "./good").replace("- ./good", "- ./target")
    if algorithms == "NGRAM":
        text = re.sub(r"  speculative-draft-model-path:\n(    - .*\n)+|  speculative-eagle-topk.*\n", "", text)
    (models / "made.yaml").write_text(text)
    space = load_checked_space(str(models / "made.yaml"))
    (said,) = preflight_of(space, open_engine(space)).problems
    assert said.line == 3
    assert "./good is a drafter (LlamaForCausalLMEagle3), not a model to serve" in said.message
    assert "swap the two" in said.message
