"""`spectune init`: the space it writes is one that can be searched, and says what was found."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from forked import spectune
from readme_commands import ROOT

from spectune.engines.open import load_checked_space, open_engine
from spectune.search.guided.enumeration import legal_candidates
from spectune.space import ALGORITHM, DRAFTER

MODELS = ROOT / "spectune/engines/cpu_reference/models"
TARGET, STRONG, WHOLE = (str(MODELS / name) for name in ("target", "drafter-strong", "drafter-standalone"))
MTP = {
    "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 16, "num_hidden_layers": 4, "vocab_size": 64,
    "num_attention_heads": 64, "max_position_embeddings": 4096, "num_nextn_predict_layers": 1, "kv_lora_rank": 8,
    "auto_map": {"AutoConfig": "modeling.Config"},
}  # fmt: skip


def init(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return spectune("init", *words, cwd=cwd)


def model(folder: Path, config: dict[str, object]) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def test_every_drafter_gets_its_own_algorithm(tmp_path: Path) -> None:
    done = init("--model", TARGET, "--drafter", STRONG, "--drafter", WHOLE, "--runtime", "cpu-reference", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    space = load_checked_space(str(tmp_path / "target.yaml"))
    drafting = {(c.values[ALGORITHM], c.values[DRAFTER]) for c in legal_candidates(space, open_engine(space))
                if c.speculative}  # fmt: skip
    assert drafting == {("EAGLE3", STRONG), ("STANDALONE", WHOLE)}
    assert "note" not in done.stdout


def test_what_is_written_can_be_previewed(tmp_path: Path) -> None:
    assert init("--model", TARGET, "--drafter", STRONG, "--gpu", "h200", "-o", "x.yaml", cwd=tmp_path).returncode == 0
    done = spectune("search", "x.yaml", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "--attention-backend fa3" in done.stdout


def test_a_drafter_that_cannot_work_is_left_out_with_its_reason(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    shutil.copytree(STRONG, bad)
    config = json.loads((bad / "config.json").read_text())
    (bad / "config.json").write_text(json.dumps(config | {"hidden_size": 48, "target_hidden_size": 48}))
    done = init("--model", TARGET, "--drafter", STRONG, "--drafter", str(bad), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [one["searched"] for one in told["drafters"]] == [True, False]
    assert load_checked_space(str(tmp_path / "target.yaml")).parameters[DRAFTER].values == (STRONG,)
    assert f"# left out: {bad}" in (tmp_path / "target.yaml").read_text()
    alone = init("--model", TARGET, "--drafter", str(bad), "-o", "none.yaml", cwd=tmp_path)
    assert alone.returncode == 2
    assert "no drafter can work" in alone.stderr
    assert not (tmp_path / "none.yaml").exists()


def test_a_drafter_is_no_model_to_serve(tmp_path: Path) -> None:
    swapped = init("--model", STRONG, "--drafter", TARGET, cwd=tmp_path)
    assert swapped.returncode == 2
    assert f"--model {STRONG} is a drafter (LlamaForCausalLMEagle3), not a model to serve" in swapped.stderr
    assert "swap the two" in swapped.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("link", [False, True])
def test_the_target_is_no_drafter_of_its_own(tmp_path: Path, link: bool) -> None:
    itself = tmp_path / "again" if link else Path(TARGET)
    if link:
        itself.symlink_to(TARGET)
    alone = init("--model", TARGET, "--drafter", str(itself), cwd=tmp_path)
    assert alone.returncode == 2
    assert f"the drafter {itself} is the target itself" in alone.stderr
    assert "name a smaller model of the same vocabulary, or take NGRAM" in alone.stderr
    assert not (tmp_path / "target.yaml").exists()
    beside = init("--model", TARGET, "--drafter", str(itself), "--drafter", STRONG, cwd=tmp_path)
    assert beside.returncode == 0, beside.stderr
    assert f"left out: the drafter {itself} is the target itself" in beside.stdout
    assert load_checked_space(str(tmp_path / "target.yaml")).parameters[DRAFTER].values == (STRONG,)


def test_without_a_drafter_the_models_own_layers_or_its_own_words(tmp_path: Path) -> None:
    done = init("--model", model(tmp_path / "mtp", MTP), "--gpu", "b200", "--gpus", "6", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "mtp.yaml").read_text()
    space = load_checked_space(str(tmp_path / "mtp.yaml"))
    assert any(c.speculative for c in legal_candidates(space, open_engine(space)))
    assert space.engine.args["tp-size"] == space.engine.gpus == 4
    assert space.engine.args["trust-remote-code"] is True
    assert "attention-backend: [" in written
    assert init("--model", TARGET, "-o", "ngram.yaml", cwd=tmp_path).returncode == 0
    assert load_checked_space(str(tmp_path / "ngram.yaml")).parameters[ALGORITHM].values == ("none", "NGRAM")


KIMI = {
    "architectures": ["KimiK25ForConditionalGeneration"], "model_type": "kimi_k25", "vision_config": {},
    "text_config": {
        "model_type": "kimi_k2", "num_hidden_layers": 61, "hidden_size": 7168, "vocab_size": 163840,
        "max_position_embeddings": 262144, "num_attention_heads": 64, "kv_lora_rank": 512,
    },
}  # fmt: skip
KIMI_DRAFTER = {
    "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 7168, "num_hidden_layers": 1, "vocab_size": 163840,
    "draft_vocab_size": 32000, "max_position_embeddings": 262144,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 30, 58]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("gpu", "backends", "chains_only"),
    [
        ("h200", ("fa3", "triton"), set()),
        ("b200", ("trtllm_mla", "triton"), {"trtllm_mla"}),
        ("rtx-pro-6000", ("triton",), set()),
    ],
)
def test_a_model_with_mla_gets_the_backends_that_serve_it(
    gpu: str, backends: tuple[str, ...], chains_only: set[str], tmp_path: Path
) -> None:
    target, drafter = model(tmp_path / "kimi", KIMI), model(tmp_path / "draft", KIMI_DRAFTER)
    done = init("--model", target, "--drafter", drafter, "--gpu", gpu, "--gpus", "8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    space = load_checked_space(str(tmp_path / "kimi.yaml"))
    assert space.engine.args["page-size"] == 1
    assert space.engine.args["trust-remote-code"] is True
    assert space.parameters["attention-backend"].values == backends
    legal = [one for one in legal_candidates(space, open_engine(space)) if one.speculative]
    trees = {one.values["attention-backend"] for one in legal if one.values["speculative-eagle-topk"] > 1}
    assert trees == set(backends) - chains_only
    written = (tmp_path / "kimi.yaml").read_text()
    assert "has MLA (multi-head latent attention), with which flashinfer takes chains only" in written
    assert ("trtllm_mla is SGLang's own choice on b200, with pages of 64 tokens; chains only" in written) == bool(
        chains_only
    )
    preview = spectune("search", "kimi.yaml", "--dry-run", cwd=tmp_path)
    assert preview.returncode == 0, preview.stderr


def test_of_a_model_that_was_not_seen_only_what_runs_either_way_is_searched(tmp_path: Path) -> None:
    done = init("--model", "org/kimi-k9", "--drafter", "org/k9-eagle3", "--gpu", "b200", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    space = load_checked_space(str(tmp_path / "kimi-k9.yaml"))
    assert space.engine.args["trust-remote-code"] is True
    assert space.parameters["attention-backend"].values == ("flashinfer", "triton")
    legal = legal_candidates(space, open_engine(space))
    trees = {one.values["attention-backend"] for one in legal if one.values.get("speculative-eagle-topk", 1) > 1}
    assert trees == {"triton"}
    written = (tmp_path / "kimi-k9.yaml").read_text()
    assert "whether the model has MLA (multi-head latent attention) could not be told" in written
    assert "trtllm_mha is left out" in written


def test_code_of_its_own_is_found_beside_the_config(tmp_path: Path) -> None:
    without = {name: value for name, value in MTP.items() if name != "auto_map"}
    target = model(tmp_path / "own", without)
    (tmp_path / "own/tokenizer_config.json").write_text(json.dumps({"auto_map": {"AutoTokenizer": ["own.T", None]}}))
    assert init("--model", target, "--gpu", "h200", cwd=tmp_path).returncode == 0
    assert f"tokenizer_config.json of {target} names code of its own" in (tmp_path / "own.yaml").read_text()
    plain = model(tmp_path / "plain", without)
    assert init("--model", plain, cwd=tmp_path).returncode == 0
    space = load_checked_space(str(tmp_path / "plain.yaml"))
    assert "trust-remote-code" not in space.engine.args
    assert space.parameters["attention-backend"].values == ("triton",), "which serves every model on every GPU"


def test_models_of_a_hub_are_taken_by_name(tmp_path: Path) -> None:
    done = init("--model", "org/big", "--drafter", "org/big-eagle3", "--gpu", "rtx-pro-6000", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a guess from its name" in done.stdout
    assert "env.NCCL_ALGO" in load_checked_space(str(tmp_path / "big.yaml")).parameters


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "/no/such/folder"], "no model folder /no/such/folder"),
        (["--model", TARGET, "--drafter", "./nothing"], "no model folder ./nothing"),
        (["--model", TARGET, "--drafter", "org/unknown"], "cannot be told"),
        (["--model", TARGET, "--runtime", "gpu-reference"], "there is no runtime 'gpu-reference'"),
        (["--model", TARGET, "--gpu", "tpu"], "--gpu must be one of"),
        (["--model", TARGET, "--name", "a/b\n"], "name"),
    ],
)
def test_bad_input_is_told_and_leaves_no_file(words: list[str], said: str, tmp_path: Path) -> None:
    done = init(*words, "-o", "x.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "target.yaml").write_text("mine")
    done = init("--model", TARGET, cwd=tmp_path)
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert (tmp_path / "target.yaml").read_text() == "mine"


def test_a_drafter_that_is_named_twice_is_searched_once(tmp_path: Path) -> None:
    done = init("--model", TARGET, "--drafter", STRONG, "--drafter", f"{STRONG}/", "--runtime", "cpu-reference",
                cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert load_checked_space(str(tmp_path / "target.yaml")).parameters[DRAFTER].values == (STRONG,)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "~nobody-has-this-name/x"], "there is no model folder"),
        (["--model", TARGET, "--drafter", "~nobody-has-this-name"], "there is no model folder"),
        (["--model", TARGET, "--name", "a/../../b"], "a study's name is made of"),
        (["--model", TARGET, "--name", "n" * 101], "100 at most"),
    ],
)
def test_odd_names_are_told_and_leave_nothing(words: list[str], said: str, tmp_path: Path) -> None:
    done = init(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_printed_can_be_pasted(tmp_path: Path) -> None:
    done = init("--model", TARGET, "--runtime", "cpu-reference", "-o", "my space\x1b.yaml", cwd=tmp_path)
    assert "\x1b" not in done.stdout
    assert r"next: spectune search 'my space\x1b.yaml' --dry-run" in done.stdout
    told = init(
        "--model", TARGET, "--runtime", "cpu-reference", "-o", os.fsdecode(b"\xff.yaml"), "--json", cwd=tmp_path
    )
    assert json.loads(told.stdout)["path"] == r"\udcff.yaml"


def test_a_drafter_that_reaches_less_far_than_the_target_sets_the_context_length(tmp_path: Path) -> None:
    short = tmp_path / "short"
    shutil.copytree(STRONG, short)
    config = json.loads((short / "config.json").read_text())
    (short / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 512}))
    done = init("--model", TARGET, "--drafter", str(short), "--drafter", STRONG, "--gpu", "h200", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    space = load_checked_space(str(tmp_path / "target.yaml"))
    assert space.engine.args["context-length"] == 512
    assert space.parameters[DRAFTER].values == (str(short), STRONG)
    assert "for longer requests leave out the drafters" in (tmp_path / "target.yaml").read_text()
    assert spectune("search", "target.yaml", "--dry-run", cwd=tmp_path).returncode == 0
