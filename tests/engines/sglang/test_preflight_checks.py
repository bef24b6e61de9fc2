"""Every check of the preflight on made checkpoints: it fires on what it is for, and alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import made_checkpoints as made
import numpy as np
import pytest

from spectune.engines.sglang.preflight import CHECKS, Checkpoint, preflight
from spectune.engines.sglang.preflight.architectures import architectures
from spectune.engines.sglang.rules.judging import Finding

Case = Callable[[Path], dict[str, Any]]
CASES: dict[str, list[Case]] = {}
KINDS: dict[str, tuple[Mapping[str, Any], Callable[[], Mapping[str, Any]]]] = {
    "EAGLE3": (made.EAGLE3, made.eagle3_tensors),
    "EAGLE": (made.EAGLE1, lambda: {"fc.weight": made.weight(made.HIDDEN, 2 * made.HIDDEN)}),
    "STANDALONE": (made.STANDALONE, lambda: made.whole_tensors(1)),
}


def case(name: str) -> Callable[[Case], Case]:
    def add(made_case: Case) -> Case:
        CASES.setdefault(name, []).append(made_case)
        return made_case

    return add


def judged(target: Path, draft: Path | None, algorithm: str = "EAGLE3", **asked: Any) -> list[Finding]:
    drafter = None if draft is None else Checkpoint.in_folder(draft)
    return preflight(Checkpoint.in_folder(target), drafter, algorithm=algorithm, **asked)


def launch(
    folder: Path,
    algorithm: str = "EAGLE3",
    *,
    kind: str | None = None,
    target: Mapping[str, Any] = made.TARGET,
    draft: Mapping[str, Any] = {},
    tensors: Mapping[str, Any] = {},
    **asked: Any,
) -> dict[str, Any]:
    """Write a target and a drafter of a kind, with changes; a tensor of None is left out."""
    config, whole = KINDS[kind or algorithm]
    there = {name: values for name, values in {**whole(), **tensors}.items() if values is not None}
    return {
        "target": made.write(folder / "target", target, made.whole_tensors()),
        "draft": made.write(folder / "draft", {**config, **draft}, there),
        "algorithm": algorithm,
        **asked,
    }


def itself(folder: Path) -> dict[str, Any]:
    target = made.write(folder / "target", made.TARGET, made.whole_tensors())
    return {"target": target, "draft": target, "algorithm": "STANDALONE"}


def named_only(folder: Path, drafter: str) -> dict[str, Any]:
    """Name a drafter that is not on this machine."""
    target = made.write(folder / "target", made.TARGET, made.whole_tensors())
    return {"target": target, "draft": Path(drafter), "algorithm": "EAGLE"}


def eagle_config(ids: Any) -> dict[str, Any]:
    return {"eagle_config": {"eagle_aux_hidden_state_layer_ids": ids}}


case("eagle3-drafter-under-eagle")(lambda f: launch(f, "EAGLE", kind="EAGLE3"))
case("eagle3-drafter-under-eagle")(lambda f: launch(f, "nextn", kind="EAGLE3"))
case("eagle3-name-under-eagle")(lambda f: named_only(f, "SGLang-EAGLE3-Llama"))
case("eagle3-name-under-eagle")(lambda f: named_only(f, "llama_eagle_3"))
case("eagle-drafter-under-eagle3")(lambda f: launch(f, "EAGLE3", kind="EAGLE"))
case("mtp-under-eagle3")(lambda f: {
    "target": made.write(f, made.MTP, made.whole_tensors(5)), "draft": f, "algorithm": "EAGLE3"})  # fmt: skip
case("head-under-standalone")(lambda f: launch(f, "STANDALONE", kind="EAGLE3"))
case("head-under-standalone")(lambda f: launch(f, "STANDALONE", draft={"architectures": ["Qwen3MoeForCausalLM"]}))
case("drafter-misdeclared")(lambda f: launch(f, draft={"architectures": ["LlamaForCausalLM"]}))
case("whole-model-under-eagle")(lambda f: launch(f, "EAGLE3", kind="STANDALONE"))
case("whole-model-under-eagle")(lambda f: launch(f, "EAGLE", kind="STANDALONE"))
case("target-drafts-for-itself")(itself)
case("block-drafter")(lambda f: launch(f, "DFLASH", kind="EAGLE3"))
case("block-drafter")(lambda f: launch(f, "EAGLE3", draft={"architectures": ["DFlashDraftModel"]}))
case("drafter-architecture-unknown")(lambda f: launch(f, draft={"architectures": ["OurOwnEagle3"]}))
case("target-does-not-capture")(lambda f: launch(f, target={**made.TARGET, "architectures": ["HYV3ForCausalLM"]}))
case("target-does-not-capture")(lambda f: launch(
    f, target={**made.TARGET, "architectures": ["Qwen3NextForCausalLM"]}, version="0.5.8"))  # fmt: skip
case("target-does-not-share")(lambda f: launch(
    f, "EAGLE", target={**made.TARGET, "architectures": ["Gemma2ForCausalLM"]}))  # fmt: skip
case("fusion-width")(lambda f: launch(f, target={**made.TARGET, "hidden_size": 2 * made.HIDDEN}))
case("fusion-width")(lambda f: launch(f, "EAGLE", target={**made.TARGET, "hidden_size": 2 * made.HIDDEN}))
case("fusion-shape")(lambda f: launch(f, tensors={"fc.weight": made.weight(made.HIDDEN, 2 * made.HIDDEN)}))
case("fusion-shape")(lambda f: launch(f, "EAGLE", tensors={"fc.weight": made.weight(made.HIDDEN, 3 * made.HIDDEN)}))
case("fusion-shape")(lambda f: launch(f, draft=eagle_config([1, 2, 3, 4])))
case("fusion-count")(lambda f: launch(f, draft={**eagle_config([1, 2, 3, 4]), "num_aux_hidden_states": 3}))
case("fusion-layers")(lambda f: launch(f, draft=eagle_config([1, 3, made.LAYERS])))
case("fusion-layers")(lambda f: launch(f, draft=eagle_config([1, 3, -2])))
case("fusion-layers")(lambda f: launch(f, draft=eagle_config([1, 1, 3])))
case("fusion-layers")(lambda f: launch(f, draft=eagle_config([1, "2", 3])))
case("fusion-layers")(lambda f: launch(f, draft=eagle_config({"1": 1})))
case("fusion-last-layer")(lambda f: launch(f, draft=eagle_config([1, 3, made.LAYERS - 1])))
case("fusion-missing")(lambda f: launch(f, tensors={"fc.weight": None}))
case("fusion-zero")(lambda f: launch(f, tensors={"fc.weight": 0 * made.weight(made.HIDDEN, 3 * made.HIDDEN)}))
case("fusion-zero")(lambda f: launch(f, "EAGLE", tensors={
    "fc.weight": np.zeros((made.HIDDEN, 2 * made.HIDDEN), np.float16)}))  # fmt: skip


@case("fusion-not-finite")
def _not_a_number(folder: Path) -> dict[str, Any]:
    fusion = made.weight(made.HIDDEN, 3 * made.HIDDEN)
    fusion[3, 20] = np.nan
    return launch(folder, tensors={"fc.weight": fusion})


@case("fusion-part-zero")
def _one_layer_ignored(folder: Path) -> dict[str, Any]:
    fusion = made.weight(made.HIDDEN, 3 * made.HIDDEN)
    fusion[:, made.HIDDEN : 2 * made.HIDDEN] = 0
    return launch(folder, tensors={"fc.weight": fusion})


@case("draft-vocabulary-unnamed")
def _without_its_key(folder: Path) -> dict[str, Any]:
    found = launch(folder, tensors={"d2t": None, "t2d": None, "lm_head.weight": None})
    config = {name: value for name, value in made.EAGLE3.items() if name != "draft_vocab_size"}
    (found["draft"] / "config.json").write_text(json.dumps(config))
    return found


case("draft-head-shape")(lambda f: launch(f, tensors={"lm_head.weight": made.weight(made.DRAFTED + 1, made.HIDDEN)}))
case("vocabulary-map-missing")(lambda f: launch(f, tensors={"d2t": None, "t2d": None}))
case("vocabulary-map-length")(lambda f: launch(f, tensors={"d2t": np.zeros(5, np.int64), "t2d": None}))
case("vocabulary-map-range")(lambda f: launch(f, tensors={"d2t": made.chosen(), "t2d": None}))
case("vocabulary-map-range")(lambda f: launch(f, tensors={"d2t": -made.chosen()}))
case("vocabulary-maps-disagree")(lambda f: launch(
    f, tensors={"t2d": np.isin(np.arange(made.VOCABULARY), made.chosen() + 1)}))  # fmt: skip
case("vocabulary-maps-disagree")(lambda f: launch(f, tensors={"t2d": np.ones(3, np.bool_)}))
case("vocabulary-map-repeats")(lambda f: launch(f, tensors={"d2t": -np.arange(made.DRAFTED), "t2d": None}))
case("vocabulary-size")(lambda f: launch(f, "EAGLE", draft={"vocab_size": made.VOCABULARY + 8}))


def _tokenizers(folder: Path, tokens: Mapping[str, int], **asked: Any) -> dict[str, Any]:
    found = launch(folder, "STANDALONE", **asked)
    (found["draft"] / "tokenizer.json").write_text(json.dumps({"model": {"vocab": tokens}}))
    return found


case("tokens-differ")(lambda f: _tokenizers(f, {**made.TOKENS, "t1": 2, "t2": 1}))
case("other-tokenizer")(lambda f: _tokenizers(f, {token: 63 - index for token, index in made.TOKENS.items()}))

SHORT = {"max_position_embeddings": 2048}
STRETCH = {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}
case("draft-context")(lambda f: launch(f, draft=SHORT))
case("draft-context")(lambda f: launch(f, "STANDALONE", draft=SHORT, arguments={"context-length": 2049}))
case("draft-context-stretched")(lambda f: launch(f, draft=SHORT, env=STRETCH, longest_request=3000))
case("request-beyond-context")(lambda f: launch(f, longest_request=4097))
case("request-beyond-context")(lambda f: launch(f, longest_request=2000, arguments={"context-length": 1999}))
case("rope-differs")(lambda f: launch(f, draft={"rope_scaling": {"rope_type": "yarn", "factor": 4}}))
case("other-base-model")(lambda f: launch(f, draft={"base_model_name_or_path": "org/Other-7B"}))
case("other-base-model")(lambda f: launch(
    f, draft={"speculators_config": {"verifier": {"name_or_path": "org/Other-7B"}}}))  # fmt: skip
case("quantization-inherited")(lambda f: launch(f, arguments={"quantization": "fp8"}))
case("draft-quantization-unnamed")(lambda f: launch(f, tensors={"midlayer.w": np.zeros((2, 2), np.uint8)}))


@case("target-weights-broken")
def _half_a_target(folder: Path) -> dict[str, Any]:
    found = launch(folder)
    (found["target"] / "model.safetensors").write_bytes(made.packed(made.whole_tensors())[:-1])
    return found


@case("draft-weights-broken")
def _a_shard_is_missing(folder: Path) -> dict[str, Any]:
    found = launch(folder)
    places = {"fc.weight": "model.safetensors", "norm.weight": "model-00002.safetensors"}
    (found["draft"] / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return found


@case("draft-weights-unread")
def _pickled(folder: Path) -> dict[str, Any]:
    found = launch(folder)
    (found["draft"] / "model.safetensors").rename(found["draft"] / "pytorch_model.bin")
    return found


@case("draft-weights-missing")
def _config_alone(folder: Path) -> dict[str, Any]:
    found = launch(folder)
    (found["draft"] / "model.safetensors").unlink()
    return found


case("no-mtp-layers")(lambda f: {
    "target": made.write(f, made.MTP, made.whole_tensors(4)), "draft": None, "algorithm": "NEXTN"})  # fmt: skip
case("no-mtp-layers")(lambda f: {
    "target": made.write(f, {**made.MTP, "num_nextn_predict_layers": 0}, made.whole_tensors(5)),
    "draft": f, "algorithm": "EAGLE"})  # fmt: skip


def test_every_check_has_a_case() -> None:
    assert CASES.keys() == {check.name for check in CHECKS}


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, cases in CASES.items() for number in range(len(cases))]
)
def test_a_check_fires_alone(tmp_path: Path, name: str, number: int) -> None:
    found = judged(**CASES[name][number](tmp_path))
    assert [one.rule for one in found] == [name]
    check = next(check for check in CHECKS if check.name == name)
    assert found[0].severity == check.severity
    assert found[0].message
    assert found[0].advice or check.severity == "info"


@pytest.mark.parametrize(("drafter", "algorithm"), [("org/llama-eagle", "EAGLE"), ("org/llama-eagle3", "EAGLE3")])
def test_a_name_alone_speaks_against_nothing_else(tmp_path: Path, drafter: str, algorithm: str) -> None:
    assert judged(**{**named_only(tmp_path, drafter), "algorithm": algorithm}) == []


@pytest.mark.parametrize("algorithm", KINDS)
def test_nothing_is_found_on_what_is_well_formed(tmp_path: Path, algorithm: str) -> None:
    assert judged(**launch(tmp_path, algorithm, longest_request=4096)) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"draft": {"num_aux_hidden_states": 3, "eagle_config": {}}},
        {"draft": {"target_hidden_size": made.HIDDEN}},
        {"draft": {"draft_vocab_size": None}, "tensors": {"d2t": None, "t2d": None, "lm_head.weight": None}},
        {"draft": {"base_model_name_or_path": "org/target"}},
        {"draft": {"base_model_name_or_path": "org/Target-Instruct"}},
        {"draft": {"speculators_config": {"verifier": {"name_or_path": "org/target"}}, "_name_or_path": "org/other"}},
        {"draft": {"eagle_config": {"use_aux_hidden_state": False, "eagle_aux_hidden_state_layer_ids": []}},
         "tensors": {"fc.weight": None}},
        {"draft": {"vocab_size": 48, "draft_vocab_size": 48}, "target": {**made.TARGET, "vocab_size": 48},
         "tensors": {"d2t": None, "t2d": None, "lm_head.weight": made.weight(48, made.HIDDEN)}},
        {"draft": {"max_position_embeddings": 1024, "rope_scaling": {"type": "linear", "factor": 4.0}},
         "target": {**made.TARGET, "max_position_embeddings": 1024, "rope_scaling": {"type": "linear", "factor": 4.0}}},
        {"draft": SHORT, "arguments": {"context-length": 2048}},
        {"arguments": {"quantization": "fp8", "speculative-draft-model-quantization": "unquant"}},
        {"target": {**made.TARGET, "architectures": ["OurOwnModel"]}},
        {"target": {"architectures": ["KimiK25ForConditionalGeneration"], "text_config": made.TARGET}},
    ],
)  # fmt: skip
def test_no_false_alarm(tmp_path: Path, asked: dict[str, Any]) -> None:
    assert judged(**launch(tmp_path, **asked)) == []


def test_tokens_of_one_side_alone_are_no_difference(tmp_path: Path) -> None:
    assert judged(**_tokenizers(tmp_path, {**made.TOKENS, "new": 64})) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"model": {"vocab": 3}}', '{"model": {"vocab": {"a": [1], "b": "2"}}}'])
def test_a_tokenizer_of_another_form_is_passed_over(tmp_path: Path, text: str) -> None:
    found = launch(tmp_path, "STANDALONE")
    (found["draft"] / "tokenizer.json").write_text(text)
    assert judged(**found) == []


def test_a_target_stored_with_fewer_bits_may_draft_for_itself(tmp_path: Path) -> None:
    asked = {**itself(tmp_path), "arguments": {"speculative-draft-model-quantization": "fp8"}}
    assert "target-drafts-for-itself" not in judged(**asked)


@pytest.mark.parametrize(("version", "advised"), [("0.5.12", True), ("0.5.23", False)])
def test_a_newer_version_is_advised_where_there_is_one(tmp_path: Path, version: str, advised: bool) -> None:
    found = judged(**launch(tmp_path, draft={"architectures": ["Unheard"]}, version=version))
    advice = {one.rule: one.advice for one in found}["drafter-architecture-unknown"]
    assert ("newer SGLang" in advice) == advised


def test_a_bundled_drafter_is_the_target_itself(tmp_path: Path) -> None:
    folder = made.write(tmp_path, made.MTP, made.whole_tensors(5))
    assert judged(folder, None, "NEXTN") == []
    assert judged(folder, folder, "EAGLE") == []


def test_what_is_not_here_is_passed_over(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert judged(nowhere, nowhere / "draft") == []
    assert judged(launch(tmp_path)["target"], None, "NGRAM") == []


def test_the_fusion_layer_took_three_layers_before_0_5_12(tmp_path: Path) -> None:
    four = {"draft": eagle_config([1, 2, 3, 4]), "tensors": {"fc.weight": made.weight(made.HIDDEN, 4 * made.HIDDEN)}}
    assert judged(**launch(tmp_path, **four)) == []
    assert [one.rule for one in judged(**launch(tmp_path, **four, version="0.5.11"))] == [
        "fusion-shape", "fusion-count"
    ]  # fmt: skip


def test_the_table_of_architectures() -> None:
    table = architectures()
    assert table["LlamaForCausalLM"].captures_in("0.5.6")
    assert table["KimiK25ForConditionalGeneration"].captures == "0.5.10"
    assert table["DeepseekV3ForCausalLM"].bundled == "DeepseekV3ForCausalLMNextN"
    assert {row.drafter for row in table.values()} == {"", "eagle", "eagle3", "mtp", "block"}
    assert all(not row.bundled or table[row.bundled].drafter == "mtp" for row in table.values())


@pytest.mark.parametrize("factor", [float("inf"), float("nan"), 1e308, 10**400, "two", [2], True])
def test_a_rope_factor_that_is_no_number_says_nothing_of_the_context(tmp_path: Path, factor: Any) -> None:
    scaled = {"rope_scaling": {"rope_type": "linear", "factor": factor}}
    found = launch(tmp_path, target={**made.TARGET, **scaled}, draft=scaled)
    assert "draft-context" not in {one.rule for one in judged(**found, arguments={"context-length": 4096})}
    if not isinstance(factor, int):
        assert Checkpoint.in_folder(found["draft"]).context_length is None


def test_a_map_below_the_first_token_is_wrong_for_every_target(tmp_path: Path) -> None:
    offsets = made.eagle3_tensors()["d2t"].copy()
    offsets[3] = -(10**9)
    nameless = {key: value for key, value in made.TARGET.items() if key != "vocab_size"}
    found = {one.rule: one.message for one in judged(**launch(tmp_path, target=nameless, tensors={"d2t": offsets}))}
    assert "sends 1 of 32 tokens outside the target's vocabulary" in found["vocabulary-map-range"]
