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
from spectune.search.enumeration import legal_candidates
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
