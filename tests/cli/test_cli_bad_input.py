"""A user's mistake gets one message with value, rule and place, exit code 2, and leaves nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import spectune
from readme_commands import ROOT

SPACE = """schema: 1
name: mine
engine: {{python: {python}, gpus: 0, args: {{model-path: {model}, device: cpu{more}}}}}
search:
  speculative-algorithm: [none, EAGLE3]
  speculative-draft-model-path: org/drafter
  speculative-num-steps: {{from: 1, to: 3}}
  speculative-eagle-topk: 1
  speculative-num-draft-tokens: {{from: 2, to: 4}}
workload: {{prompts: builtin:tiny, levels: [{{concurrency: 1}}]}}
"""


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr
    # Nothing is said twice.
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == len(set(lines))


def write(folder: Path, text: str) -> Path:
    (folder / "mine.yaml").write_text(text)
    return folder / "mine.yaml"


def sample(folder: Path, *, python: str = sys.executable, model: str = "org/model", more: str = "") -> Path:
    return write(folder, SPACE.format(python=python, model=model, more=more))


WORDS = """
class AutoTokenizer:
    @classmethod
    def from_pretrained(cls, *args, **more):
        return cls()

    def apply_chat_template(self, messages, **more):
        return messages[-1]["content"]

    def encode(self, text, **more):
        return [len(word) for word in text.split()]
"""


@pytest.fixture
def fake_engine(tmp_path: Path) -> str:
    """An interpreter that claims to have SGLang, and whose server is never reached in these tests; it can cut words."""
    program = tmp_path / "bin/python-with-sglang"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="{program.parent}"\n'
        f'case "$2" in *importlib.metadata*) echo 0.5.23;; *) exec {sys.executable} "$@";; esac\n'
    )
    program.chmod(0o755)
    (program.parent / "transformers.py").write_text(WORDS)
    return str(program)


def test_all_mistakes_of_a_file_at_once_with_their_lines(tmp_path: Path) -> None:
    write(
        tmp_path,
        "schema: 1\nname: mine\nengin: {}\nengine: {python: python3, gpus: eight, args: {model-path: m, tp-sizes: 8}}\n"
        "search:\n  speculative-num-steps: {from: 5, to: 2}\n  decode-attention-backend: [tritn]\n",
    )
    done = spectune("search", "mine.yaml", "--dry-run", cwd=tmp_path)
    refused(done, "mine.yaml:3", "engin", "mine.yaml:4", "tp-size", "mine.yaml:6", "mine.yaml:7", "triton")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schema: 1\nsearch: [", "mine.yaml"),
        ("", "mine.yaml"),
        ("- 1\n", "mine.yaml"),
        ("schema: 99\nsearch: {}\n", "99"),
    ],
)
def test_files_that_are_no_search_space(text: str, words: str, tmp_path: Path) -> None:
    write(tmp_path, text)
    refused(spectune("search", "mine.yaml", cwd=tmp_path), words)


def test_a_space_that_does_not_exist_names_those_that_do(tmp_path: Path) -> None:
    refused(spectune("search", "nowhere.yaml", cwd=tmp_path), "nowhere.yaml", "quickstart")


def test_an_interpreter_without_sglang(tmp_path: Path) -> None:
    sample(tmp_path)
    refused(spectune("search", "mine.yaml", cwd=tmp_path), sys.executable, "no sglang", "--dry-run")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


def test_no_interpreter_and_no_model_are_said_together(tmp_path: Path) -> None:
    sample(tmp_path, python="/no/such/python", model="/no/such/model")
    refused(spectune("search", "mine.yaml", cwd=tmp_path), "/no/such/python", "mine.yaml:3", "/no/such/model")


@pytest.mark.parametrize("argument", ["host: localhost", "api-key: k", "nccl-port: 5"])
def test_arguments_that_are_spectunes_to_choose(argument: str, tmp_path: Path) -> None:
    sample(tmp_path, more=f", {argument}")
    refused(
        spectune("search", "mine.yaml", "--dry-run", cwd=tmp_path), "mine.yaml:3", argument.split(":", maxsplit=1)[0]
    )


@pytest.fixture
def held_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_a_port_held_by_someone_else(tmp_path: Path, fake_engine: str, held_port: int) -> None:
    sample(tmp_path, python=fake_engine, more=f", port: {held_port}")
    refused(spectune("search", "mine.yaml", cwd=tmp_path), str(held_port), str(os.getpid()))
    assert list(tmp_path.glob("studies/*/trials/*/result.json")) == []


def study(folder: Path) -> Path:
    """A study of the sample space that has begun and has no launch yet."""
    from spectune.engines.open import load_checked_space, open_engine
    from spectune.search import StudyFolder, open_study

    space = load_checked_space(str(sample(folder)))
    opened = StudyFolder(folder / "studies/mine")
    open_study(opened, space, open_engine(space))
    return opened.root


def test_a_study_without_launches_has_no_report(tmp_path: Path) -> None:
    study(tmp_path)
    refused(spectune("report", "mine", cwd=tmp_path), "no finished launch")
    refused(spectune("export", "mine", cwd=tmp_path), "no finished launch")


def test_a_study_that_does_not_exist_names_those_that_do(tmp_path: Path) -> None:
    study(tmp_path)
    refused(spectune("report", "yours", cwd=tmp_path), "yours", "mine")


@pytest.mark.parametrize("damage", ["{", "[]", '{"schema": 1}', '{"schema": 7}', ""])
def test_a_corrupt_study_folder(damage: str, tmp_path: Path, fake_engine: str) -> None:
    root = study(tmp_path)
    record = root / "trials/0000-baseline/result.json"
    record.parent.mkdir(parents=True)
    record.write_text(damage)
    sample(tmp_path, python=fake_engine)
    for file in ("space.yaml", "resolved.yaml"):
        (root / file).write_text((tmp_path / "mine.yaml").read_text())
    for command in (("report", "mine"), ("search", "mine.yaml")):
        refused(spectune(*command, cwd=tmp_path), "trials/0000-baseline/result.json")
    assert record.read_text() == damage


def test_the_space_changed_under_a_study(tmp_path: Path, fake_engine: str) -> None:
    study(tmp_path)
    sample(tmp_path, python=fake_engine)
    refused(spectune("search", "mine.yaml", cwd=tmp_path), "another search space", "--study")


def test_a_folder_that_cannot_be_written(tmp_path: Path, fake_engine: str) -> None:
    (tmp_path / "studies").write_text("a file where the folder should be")
    sample(tmp_path, python=fake_engine)
    refused(spectune("search", "mine.yaml", cwd=tmp_path), "studies")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--baseline", "0", "--cycle-ms", "30", "--accept", "2"), "baseline"),
        (("--baseline", "82", "--cycle-ms", "-1", "--accept", "0.5"), "accept"),
        (("--baseline", "82", "--cycle-ms", "30", "--accept", "4", "--steps", "2"), "3"),
        (("--baseline", "82", "--cycle-ms", "30", "--accept", "2", "--target", "1e308"), "1,000,000"),
        (("--baseline", "nan", "--cycle-ms", "30", "--accept", "2"), "baseline"),
    ],
)
def test_arithmetic_on_what_cannot_be(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    refused(spectune("breakeven", *arguments, cwd=tmp_path), words)


@pytest.mark.parametrize(
    "arguments",
    [
        ("search",),
        ("serch", "x"),
        ("search", "quickstart", "--trials", "0"),
        ("search", "quickstart", "--sampler", "guide"),
        ("breakeven", "--baseline", "x"),
        ("engine", "install", "gpu"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = spectune(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("search", "quickstart", "--trials", "0"), "'--trials': it must be a whole number of at least 1, but got '0'"),
        (("search", "quickstart", "--trials", "2.5"), "it must be a whole number of at least 1, but got '2.5'"),
        (("search", "quickstart", "--trials", "１２"), "it must be a whole number of at least 1, but got '１２'"),
        (("breakeven", "--baseline", "٨٢"), "it must be a number, such as 82 or 30.5, but got '٨٢'"),
        (("simulate", "--port", "70000"), "it must be a whole number from 1 to 65535, but got '70000'"),
        (("breakeven", "--steps", "many"), "it must be a whole number, but got 'many'"),
        (("breakeven", "--baseline", "82tok"), "it must be a number, such as 82 or 30.5, but got '82tok'"),
    ],
)
def test_a_number_that_is_none_is_told_with_its_value_and_the_rule(words: tuple[str, ...], said: str) -> None:
    done = spectune(*words)
    assert done.returncode == 2
    assert said in done.stderr


def test_no_studies_yet_is_no_error(tmp_path: Path) -> None:
    assert spectune("studies", cwd=tmp_path).returncode == 0
    assert json.loads(spectune("studies", "--json", cwd=tmp_path).stdout) == []


def test_missing_gpus_are_said_with_what_works_here(tmp_path: Path) -> None:
    refused(spectune("search", "eagle3", cwd=tmp_path), "8 GPUs", "--dry-run", "quickstart")
    assert list(tmp_path.iterdir()) == []


def test_a_simulated_space_is_not_told_to_be_simulated(tmp_path: Path) -> None:
    text = (ROOT / "search_spaces/quickstart.yaml").read_text()
    write(tmp_path, text.replace("  runtime: cpu-reference", "  gpus: 16"))
    done = spectune("search", "mine.yaml", "--engine", "simulated", "--virtual", cwd=tmp_path)
    refused(done, "engine.gpus asks for 16 GPUs, but the profile kimi-k2.5-pcie has 8; lower it, or take")
    assert "what works here" not in done.stderr


def test_dry_run_needs_neither_engine_nor_gpu(tmp_path: Path) -> None:
    sample(tmp_path, python="/no/such/python")
    done = spectune("search", "mine.yaml", "--dry-run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["legal"] == {"speculation": 3, "no_speculation": 1, "total": 4}
    assert "--speculative-num-draft-tokens 4" in shown["starts_with"][1]["command"]
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


def test_likely_fatal_variables_of_a_space_are_said_before_the_search(tmp_path: Path) -> None:
    text = SPACE.format(python="/no/such/python", model="org/model", more=", tp-size: 8").replace("device: cpu, ", "")
    write(tmp_path, text.replace("search:", "search:\n  env.NCCL_ALGO: [unset, Tree]"))
    done = spectune("search", "mine.yaml", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "NCCL_ALGO=Tree" in done.stdout
