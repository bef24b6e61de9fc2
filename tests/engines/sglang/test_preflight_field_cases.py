"""Reports from the field whose cause stands in the files: each ends before a launch, with the way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import made_checkpoints as made
import pytest

from spectune.engines.sglang.preflight import Checkpoint, preflight
from spectune.engines.sglang.resolution import MACHINES, Finding, Model, Resolution, resolve

DRAFT = "speculative-draft-model-path"


def found(target: Path, draft: Path, algorithm: str, **asked: Any) -> list[Finding]:
    return preflight(Checkpoint.in_folder(target), Checkpoint.in_folder(draft), algorithm=algorithm, **asked)


def resolved(target: dict[str, Any], draft: dict[str, Any], version: str = "0.5.23", **arguments: Any) -> Resolution:
    launch = {"model-path": "t", DRAFT: "d", **arguments}
    models = Model.from_config(target), Model.from_config(draft)
    return resolve(launch, model=models[0], draft=models[1], machine=MACHINES["h100"], version=version)


@pytest.fixture
def kimi(tmp_path: Path) -> Path:
    """A target as in the field: 61 layers of width 7168 inside a multimodal config."""
    text = {"num_hidden_layers": 61, "hidden_size": 7168, "vocab_size": 163840, "max_position_embeddings": 262144}
    config = {"architectures": ["KimiK25ForConditionalGeneration"], "text_config": text, "vision_config": {}}
    return made.write(tmp_path / "Kimi-K2.5", config)


@pytest.fixture
def eagle3(tmp_path: Path) -> Path:
    """Its drafter: three layers of the target, 21504 inputs of the fusion layer."""
    config = {
        "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 7168, "num_hidden_layers": 1, "vocab_size": 163840,
        "draft_vocab_size": 32000, "max_position_embeddings": 262144,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]},
    }  # fmt: skip
    return made.write(tmp_path / "kimi-k2.5-eagle3", config)


@pytest.mark.parametrize("algorithm", ["EAGLE", "NEXTN", "eagle"])
def test_an_eagle3_drafter_under_the_eagle_flag(kimi: Path, eagle3: Path, algorithm: str) -> None:
    """sglang#21272 and the first step of the field case: accept length exactly 1.00, no error."""
    fatal = [one for one in found(kimi, eagle3, algorithm) if one.severity == "fatal"]
    assert [one.rule for one in fatal] == ["eagle3-drafter-under-eagle"]
    assert "accept length 1.0" in fatal[0].message
    assert fatal[0].advice == "--speculative-algorithm EAGLE3"
    assert [one.rule for one in found(kimi, eagle3, "EAGLE3")] == ["draft-weights-missing"]


def test_more_draft_tokens_than_a_chain_can_hold() -> None:
    """SpecForge#310: 24 draft tokens for a chain of 4 steps; the rule of the resolver says what becomes of them."""
    launch = {"speculative-algorithm": "EAGLE3", "speculative-num-steps": 4, "speculative-eagle-topk": 1,
              "speculative-num-draft-tokens": 24}  # fmt: skip
    resolution = resolved(made.TARGET, made.EAGLE3, **launch)
    assert resolution.resolved["speculative_num_draft_tokens"] == 5
    assert "chain-tokens" in {one.rule for one in resolution.findings}


@pytest.mark.parametrize("algorithm", ["EAGLE", "STANDALONE"])
def test_a_drafter_of_a_shorter_context(tmp_path: Path, algorithm: str) -> None:
    """sglang#9388 and #18220: a drafter made for 2048 tokens beside a target that is served to 131072."""
    target = made.write(tmp_path / "target", {**made.TARGET, "max_position_embeddings": 131072}, made.whole_tensors())
    config = made.EAGLE1 if algorithm == "EAGLE" else made.STANDALONE
    draft = made.write(tmp_path / "draft", {**config, "max_position_embeddings": 2048})
    fatal = next(one for one in found(target, draft, algorithm) if one.severity == "fatal")
    assert fatal.rule == "draft-context"
    assert "131072" in fatal.message
    assert "2048" in fatal.message
    assert "--context-length 2048, or SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1" in fatal.advice
    shorter = found(target, draft, algorithm, arguments={"context-length": 2048})
    assert not [one for one in shorter if one.severity != "info"]


def test_another_family_as_standalone_drafter(tmp_path: Path) -> None:
    """sglang#24051 and #23838: ids that mean different tokens, which no version notices before it serves."""
    target = made.write(tmp_path / "gemma", made.TARGET, made.whole_tensors())
    draft = made.write(tmp_path / "starcoder", made.STANDALONE, made.whole_tensors(1))
    tokens = {f"code{index}": index for index in range(made.VOCABULARY)}
    (draft / "tokenizer.json").write_text(json.dumps({"model": {"vocab": tokens}}))
    for version in ("0.5.6", "0.5.23"):
        fatal = found(target, draft, "STANDALONE", version=version)
        assert [one.rule for one in fatal] == ["other-tokenizer"]
        assert "0 is 'code0' and 't0'" in fatal[0].message


def test_padding_of_the_vocabulary_is_no_difference(tmp_path: Path) -> None:
    """sglang#24051: 151936 against 152064 rows of the same tokens; harmless, and refused by 0.5.15 and newer."""
    sizes = {"vocab_size": 151936}, {"vocab_size": 152064}
    target = made.write(tmp_path / "target", {**made.TARGET, **sizes[0]}, made.whole_tensors())
    draft = made.write(tmp_path / "draft", {**made.STANDALONE, **sizes[1]}, made.whole_tensors(1))
    assert found(target, draft, "STANDALONE") == []
    launch = {"speculative-algorithm": "STANDALONE", "speculative-num-steps": 3, "speculative-eagle-topk": 1,
              "speculative-num-draft-tokens": 4}  # fmt: skip
    configs = {**made.TARGET, **sizes[0]}, {**made.STANDALONE, **sizes[1]}
    newer = [one for one in resolved(*configs, **launch).findings if one.severity == "fatal"]
    assert [one.rule for one in newer] == ["standalone-vocabulary"]
    assert "padding alone is harmless" in newer[0].advice
    assert not resolved(*configs, version="0.5.14", **launch).fatal


def test_a_target_without_speculation_support(tmp_path: Path) -> None:
    """sglang#22679 names sliding windows; what can be stated of files and version is which targets lend what."""
    target = made.write(tmp_path / "target", {**made.TARGET, "architectures": ["Gemma2ForCausalLM"]})
    draft = made.write(tmp_path / "draft", made.EAGLE3, made.eagle3_tensors())
    assert [one.rule for one in found(target, draft, "EAGLE3")] == ["target-does-not-capture", "target-does-not-share"]
