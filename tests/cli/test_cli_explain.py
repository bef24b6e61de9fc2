"""`spectune explain` says what SGLang makes of a command, in words and as JSON, and never runs any of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from forked import spectune

from spectune.cli.explaining import choose_machine, explain
from spectune.engines.sglang.gpu_model import gpu_names, known_as
from spectune.errors import SpectuneError
from spectune.printable import printable_json

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 128256, "max_position_embeddings": 131072,
}  # fmt: skip
DRAFT = {**LLAMA, "architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": 32000}
EAGLE3 = "--speculative-algorithm EAGLE3 --speculative-draft-model-path draft"


def explained(*words: str, cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    return spectune("explain", *words, cwd=cwd, text=text, HF_HOME=str(cwd / "hub-home"))


@pytest.fixture
def models(tmp_path: Path) -> Path:
    for name, config in (("llama", LLAMA), ("draft", DRAFT)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    return tmp_path


def asked(command: str, cwd: Path, gpu: str | None = "h200") -> Any:
    return explain(command, gpu=gpu, cwd=cwd, environ={"HF_HOME": str(cwd / "hub-home")})


def found(explanation: Any, rule: str) -> Any:
    return next(finding for finding in explanation.findings if finding.rule == rule)


def test_a_command_that_starts(models: Path) -> None:
    steps = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 8"
    words = f"sglang serve llama --tp 8 {EAGLE3} {steps} --api-key hush".split()
    done = explained("--gpu", "h200", "--", *words, cwd=models)
    assert done.returncode == 0, done
    assert "SGLang 0.5.23 on h200" in done.stdout
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("speculative_num_draft_tokens")]
    assert row == ["speculative_num_draft_tokens", "8", "4", "rewritten"]
    assert "hush" not in done.stdout


def test_json_has_the_agreed_form(models: Path) -> None:
    done = explained(
        "--gpu", "h200", "--json", "--", *f"--model-path llama {EAGLE3} --api-key hush".split(), cwd=models
    )
    answer = json.loads(done.stdout)
    assert list(answer) == ["status", "resolved", "findings"]
    resolved = answer["resolved"]
    assert [resolved[f"speculative_{name}"] for name in ("num_steps", "eagle_topk", "num_draft_tokens")] == [5, 4, 8]
    assert resolved["attention_backend"] == "fa3"
    assert resolved["api_key"] == "***"
    assert all(list(finding) == ["rule", "severity", "message", "advice"] for finding in answer["findings"])


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("--speculative-num-steps 3 --speculative-eagle-topk 2 --speculative-num-draft-tokens 40", "warning"),
        ("--speculative-num-steps 3", "rejected"),
        ("--tp-size eight", "rejected"),
        ("--cuda-graph-max-bs 8", "rejected"),
    ],
)
def test_a_command_that_sglang_refuses_or_dies_of(models: Path, words: str, status: str) -> None:
    explanation = asked(f"sglang serve llama {EAGLE3} {words}", models)
    assert explanation.status == status
    assert explanation.exit_code == 1
    assert any(finding.severity == "fatal" and finding.advice for finding in explanation.findings)


def test_a_renamed_option_does_not_hide_the_rest(models: Path) -> None:
    explanation = asked("sglang serve llama --cuda-graph-max-bs 8", models)
    assert found(explanation, "renamed-option").advice == "write --cuda-graph-max-bs-decode 8"
    assert explanation.resolved["decode_cuda_graph"]["max_bs"] == 8


def test_from_standard_input_with_shell_noise(models: Path) -> None:
    launch = "nohup python -m sglang.launch_server \\\n  --model-path llama > log 2>&1 &\n"
    script = f"#!/bin/bash\nexport NCCL_DEBUG=INFO\n{launch}"
    done = explained("--json", "--gpu", "h100", cwd=models, text=script)
    assert json.loads(done.stdout)["resolved"]["model_path"] == "llama"
    assert not (models / "log").exists()


@pytest.mark.parametrize("words", [["ls"], ["--", "python", "x.py"], ["--gpu", "a100", "--", "--model-path", "m"], []])
def test_what_is_no_launch_ends_with_2(tmp_path: Path, words: list[str]) -> None:
    done = explained(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("spectune: ")


def test_a_file_is_to_be_piped_in(tmp_path: Path) -> None:
    (tmp_path / "my run.sh").write_text("sglang serve --model-path org/model\n")
    done = explained("my run.sh", cwd=tmp_path)
    assert done.returncode == 2
    assert "spectune explain < 'my run.sh'" in done.stderr


def test_nothing_a_terminal_obeys_is_printed(tmp_path: Path) -> None:
    evil = "\x1b]0;x\x07\x9b31m\u202e"
    for words in (
        ["--model-path", evil], ["--model-path", "m", f"--{evil}"], [evil], ["--model-path", "m", "--port", evil],
        [f"A{evil}=1", "sglang", "serve", "m"], ["--model-path", f"/{evil}", "--served-model-name", evil],
    ):  # fmt: skip
        for form in ([], ["--json"]):
            done = explained(*form, "--gpu", "h100", "--", *words, cwd=tmp_path)
            assert done.returncode in (0, 1, 2)
            assert all(line.isprintable() for line in (done.stdout + done.stderr).split("\n")), words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "config.json:1"),
        ("[1]", "must hold an object"),
        (b"\xff\xfe", "not UTF-8"),
        ("[" * 100_000, "too deeply"),
        (None, "does not exist"),
    ],
)
def test_a_model_folder_sglang_cannot_read(tmp_path: Path, text: str | bytes | None, words: str) -> None:
    (tmp_path / "m").mkdir()
    if text is not None:
        (tmp_path / "m/config.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    explanation = asked("sglang serve ./m", tmp_path)
    assert explanation.status == "rejected"
    assert words in found(explanation, "model-config").message


@pytest.mark.parametrize(
    "lie",
    [
        {"architectures": "LlamaForCausalLM"}, {"architectures": []}, {"architectures": [1]}, {"hidden_size": "4096"},
        {"num_hidden_layers": -1}, {"num_key_value_heads": 64}, {"text_config": {"vocab_size": True}},
        {"architectures": {}, "text_config": 3, "vision_config": [], "num_attention_heads": None},
    ],
)  # fmt: skip
def test_a_config_that_cannot_be_true_is_doubted(models: Path, lie: dict[str, Any]) -> None:
    (models / "llama/config.json").write_text(json.dumps({**LLAMA, **lie}))
    explanation = asked(f"sglang serve llama {EAGLE3}", models)
    assert found(explanation, "model-config").severity == "warning"
    assert "config.json" in found(explanation, "model-config").message


@pytest.mark.parametrize(
    ("words", "status", "rule"),
    [
        ("--speculative-num-steps 0 --speculative-eagle-topk 1", "warning", "nothing-drafted"),
        ("--mem-fraction-static nan", "warning", "memory-fraction-bounds"),
        ("--mem-fraction-static 5", "warning", "memory-fraction-bounds"),
        ("--page-size 0", "rejected", "page-zero"),
        ("--tp 0", "warning", "counts-positive"),
        ("--cuda-graph-max-bs-decode 1000000000 --disable-cuda-graph-padding", "warning", "graph-sizes"),
        ("--chunked-prefill-size 1000000000000", "warning", "memory-fraction-bounds"),
        ("""--cuda-graph-config '{"decode": {"max_bs": "x"}}'""", "rejected", "graph-values"),
        ("""--cuda-graph-config '{"decode": {"bs": []}}'""", "rejected", "graph-values"),
        ("""--cuda-graph-config '{"decode": {"bs": ["1"]}}'""", "rejected", "graph-values"),
        ("""--cuda-graph-config '{"decode": {"bs": 5}}'""", "rejected", "graph-values"),
        ("""--cuda-graph-config '{"prefill": {"max_bs": 1.5}}'""", "rejected", "graph-values"),
        ("--speculative-adaptive --speculative-adaptive-config llama", "warning", "adaptive-config"),
        ("--speculative-adaptive --speculative-adaptive-config /dev/zero", "warning", "adaptive-config"),
    ],
)
def test_values_that_mean_nothing(models: Path, words: str, status: str, rule: str) -> None:
    explanation = asked(f"sglang serve llama {EAGLE3} {words}", models)
    assert explanation.status == status
    assert found(explanation, rule)
    json.dumps(printable_json(explanation.to_json()), allow_nan=False)


def test_ngram_that_looks_nothing_up(models: Path) -> None:
    ngram = "sglang serve llama --speculative-algorithm NGRAM"
    assert found(asked(f"{ngram} --speculative-num-draft-tokens 1", models), "nothing-looked-up")
    assert asked(f"{ngram} --speculative-ngram-max-bfs-breadth 0", models).status == "rejected"


@pytest.mark.parametrize("vision", [{"num_hidden_layers": "x"}, {"hidden_size": None}, {"hidden_size": [1]}])
def test_a_vision_part_that_cannot_be_true_is_passed_over(models: Path, vision: dict[str, Any]) -> None:
    (models / "llama/config.json").write_text(json.dumps({**LLAMA, "vision_config": vision}))
    assert asked("sglang serve llama", models).resolved["mem_fraction_static"] > 0


def test_a_downloaded_hub_model_is_found(models: Path) -> None:
    model = models / "hub-home/hub/models--org--name"
    for commit, layers in (("aaa", 1), ("bbb", 2)):
        (model / "snapshots" / commit).mkdir(parents=True)
        (model / "snapshots" / commit / "config.json").write_text(json.dumps({**LLAMA, "num_hidden_layers": -layers}))
    (model / "refs").mkdir()
    (model / "refs/main").write_text("aaa")
    assert "got -1" in found(asked("sglang serve org/name", models), "model-config").message
    assert "got -2" in found(asked("sglang serve org/name --revision bbb", models), "model-config").message
    assert found(asked("sglang serve org/other", models), "model-unknown").severity == "warning"
    old = found(asked("sglang serve gpt2", models), "model-unknown").message
    assert old == "--model-path gpt2 is neither a folder here nor in the hub's cache: its config.json was not seen"
    assert found(asked("sglang serve ./missing", models), "model-unknown").severity == "warning"
    there = found(asked("docker run img sglang serve /models/x", models), "model-unknown")
    assert "is a path of the container" in there.message
    there = found(asked("docker run img sglang serve org/other", models), "model-unknown")
    assert "neither a folder here nor in the hub's cache" in there.message


def test_a_hub_model_is_said_first_not_to_have_been_seen(models: Path) -> None:
    explanation = asked("sglang serve org/model --tp 8", models)
    assert (explanation.status, explanation.exit_code) == ("warning", 0)
    assert explanation.findings[0].rule == "model-unknown"
    headline = explained("--gpu", "h200", "--", "sglang", "serve", "org/model", cwd=models).stdout.splitlines()[0]
    seen = "Nothing known speaks against this, but the config.json of org/model was not seen here"
    assert headline == f"{seen}: SGLang 0.5.23 on h200 (read, not run)"


def test_what_was_assumed_and_what_was_not_seen_is_said_first(models: Path) -> None:
    words = ["sglang", "serve", "/no/model", "--tp", "8", *EAGLE3.split(), "--speculative-num-steps", "3"]
    lines = explained("--", *words, cwd=models).stdout.splitlines()
    if not gpu_names():
        assert lines.pop(0).startswith("no GPU was found here: explained for h100; --gpu h100|")
    assert lines[0].startswith("SGLang refuses this: ")
    assert lines[1].startswith("warning: --model-path /no/model: there is no such folder here")
    assert any(line.startswith("fatal: ") for line in lines[2:])
    assert sum("explained for h100" in line for line in lines) == 0


def test_what_could_not_be_read_whole_is_no_success(models: Path) -> None:
    done = explained("--gpu", "h200", "--", "sglang serve llama --tp-size $TP", cwd=models)
    assert done.returncode == 1
    assert done.stdout.startswith("Incomplete: ")
    assert asked("sglang serve llama --tp-size ${TP:-8}", models).exit_code == 0


def test_findings_come_before_the_table_which_holds_what_changes(models: Path) -> None:
    words = f"sglang serve llama {EAGLE3} --tp 8 --log-level info".split()
    lines = explained("--gpu", "H200", "--", *words, cwd=models).stdout.splitlines()
    assert lines[0] == "SGLang takes this, but see below: SGLang 0.5.23 on h200 (read, not run)"
    table = lines.index("What SGLang makes of it:")
    assert any(line.startswith("warning: ") for line in lines[:table])
    assert not any(line.startswith(("info: ", "warning: ")) for line in lines[table:])
    assert not any("read, not run" in line or "abbreviated" in line for line in lines[1:])
    assert not any(line.startswith(("tp_size", "device")) for line in lines[table:])
    assert lines[-1].startswith("as given: ")
    assert "tp_size" in lines[-1]


def test_the_machine_that_is_meant(models: Path) -> None:
    assert choose_machine(None, on_cpu=False, here=["NVIDIA H200"])[0].name == "h200"
    assert choose_machine(None, on_cpu=True, here=["NVIDIA H200"])[0].name == "cpu"
    machine, said = choose_machine(None, on_cpu=False, here=["NVIDIA A100-SXM4-80GB"])
    assert machine.name == "h100"
    assert "A100" in said[0].message
    machine, said = choose_machine("rtx-pro-6000", on_cpu=False, here=[])
    assert "read, not run" in said[0].message
    assert choose_machine("H100", on_cpu=False, here=[])[0].name == "h100"
    with pytest.raises(SpectuneError, match=r"--gpu must be one of h100.*other GPUs are not known"):
        choose_machine("a100", on_cpu=False, here=[])
    assert asked("sglang serve llama --device cpu", models, gpu=None).machine.name == "cpu"


def test_the_gpus_of_the_driver(tmp_path: Path) -> None:
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0/information").write_text("Model: \t\t NVIDIA RTX PRO 6000 Blackwell\nIRQ: 1\n")
    assert [known_as(name) for name in gpu_names(tmp_path)] == ["rtx-pro-6000"]
    assert gpu_names(tmp_path / "none") == []
    assert known_as("NVIDIA GB200") is None
