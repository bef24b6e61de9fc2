"""The tokenizer's process: what it answers, and what becomes of us when it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.services.daemon import eventually
from spectune.engines.sglang import tokenizer as tokenizing
from spectune.engines.sglang.interpreter import Interpreter
from spectune.engines.sglang.tokenizer import Tokenizer
from spectune.errors import SpectuneError
from spectune.serving.processes import is_alive

# What stands in for transformers: a word is as many tokens as it has letters.
PACKAGE = """
class AutoTokenizer:
    @classmethod
    def from_pretrained(cls, model, trust_remote_code=False):
        if model == "missing": raise OSError("no such model")
        if model == "hangs": import pathlib, time; pathlib.Path(__file__).with_name("hangs").touch(); time.sleep(600)
        print("noise on standard output")
        return cls()
    def encode(self, text, add_special_tokens=True):
        return ([1] if add_special_tokens else []) + [len(word) for word in text.split()]
    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        return " ".join(message["content"] for message in messages) + " answer"
"""


@pytest.fixture
def engine(tmp_path: Path) -> Interpreter:
    (tmp_path / "transformers.py").write_text(PACKAGE)
    return Interpreter(sys.executable, {"PYTHONPATH": str(tmp_path)})


def test_text_and_messages_are_rendered_as_asked(engine: Interpreter) -> None:
    tokenizer = Tokenizer(engine, "model", trust_remote_code=False)
    try:
        assert tokenizer.render(["a bb", "ccc"], classes=["x", "x"], chat_template=False) == [[1, 1, 2], [1, 3]]
        chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bb"}]
        assert tokenizer.render([chat, "ccc"], classes=["x", "x"], chat_template=True) == [[1, 2, 6], [3, 6]]
    finally:
        tokenizer.close()


def test_a_model_without_a_tokenizer_is_said_in_its_own_words(engine: Interpreter) -> None:
    tokenizer = Tokenizer(engine, "missing", trust_remote_code=False)
    with pytest.raises(SpectuneError, match="no such model"):
        tokenizer.render(["a"], classes=["x"], chat_template=False)
    tokenizer.close()


def test_a_killed_tokenizer_is_said_so(engine: Interpreter) -> None:
    tokenizer = Tokenizer(engine, "model", trust_remote_code=False)
    tokenizer.render(["a"], classes=["x"], chat_template=False)
    tokenizer._script._process.kill()
    tokenizer._script._process.wait()
    with pytest.raises(SpectuneError, match="its process ended with signal 9"):
        tokenizer.render(["a"], classes=["x"], chat_template=False)
    tokenizer.close()


def test_what_an_interpreter_prints_at_its_start_is_passed_over(engine: Interpreter, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('a banner')")
    tokenizer = Tokenizer(engine, "model", trust_remote_code=False)
    assert tokenizer.render(["a bb"], classes=["x"], chat_template=False) == [[1, 1, 2]]
    tokenizer.close()


def test_a_hung_tokenizer_is_given_up(engine: Interpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizing, "LOADING_S", 0.5)
    tokenizer = Tokenizer(engine, "hangs", trust_remote_code=False)
    with pytest.raises(SpectuneError, match=r"did not answer within 0\.5 s"):
        tokenizer.render(["a"], classes=["x"], chat_template=False)
    tokenizer.close()


def test_it_ends_with_whoever_started_it(engine: Interpreter, tmp_path: Path) -> None:
    program = (
        "import sys, time; from spectune.engines.sglang.tokenizer import *\n"
        "t = Tokenizer(Interpreter(sys.executable, {'PYTHONPATH': sys.argv[1]}), 'hangs', trust_remote_code=False)\n"
        "print(t._script._process.pid, flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    tokenizer = psutil.Process(int(owner.stdout.readline()))
    assert eventually((tmp_path / "hangs").exists)  # it has made its arrangement with the kernel by then
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert eventually(lambda: not is_alive(tokenizer))


@pytest.mark.parametrize("content", [b"\x7fELF rubbish", b"#!/no/such/interpreter\n", b"no shebang"])
def test_a_program_that_cannot_be_run_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_bytes(content)
    program.chmod(0o755)
    with pytest.raises(SpectuneError, match="cannot be run"):
        Interpreter(str(program)).sglang_version()


@pytest.mark.parametrize("answer", ["../../evil", "one\\ntwo", "<b>", "\\377\\376"])
def test_an_answer_that_is_no_version_is_none(answer: str, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nprintf '{answer}'\n")
    program.chmod(0o755)
    assert Interpreter(str(program)).sglang_version() is None
    assert [path.name for path in tmp_path.iterdir()] == ["python"]
