"""A password in a command is not in the list of processes for longer than a moment."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from spectune.cli.program import STORAGE_VARIABLE
from spectune.cli.title import without_passwords

URL = "postgresql://me:geheim@db.example/x"
SHOW = (
    "import json, os, sys; from spectune.cli.title import hide_passwords; hide_passwords();"
    f"print(json.dumps([open('/proc/self/cmdline').read(), sys.argv[1:], os.environ.get('{STORAGE_VARIABLE}')]))"
)


@pytest.mark.parametrize("words", [["--storage", URL], [f"--storage={URL}"]])
def test_the_process_itself_has_it_in_a_variable(words: list[str]) -> None:
    command = [sys.executable, "-c", SHOW, "search", "a space.yaml", *words, "--trials", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    title, arguments, variable = json.loads(done.stdout)
    assert "geheim" not in title
    assert arguments == ["search", "a space.yaml", "--trials", "3"]
    assert variable == URL


def test_an_index_with_a_password_moves_too() -> None:
    index = "https://me:geheim@index.example/simple"
    moved = without_passwords(["engine", "install", "cpu-reference", "--torch-index", index])
    assert moved == (["engine", "install", "cpu-reference"], {"SPECTUNE_TORCH_INDEX": index})


@pytest.mark.parametrize(
    "words",
    [
        ["search", "x", "--storage", "postgresql://me@db.example/x"], ["worker", URL],
        ["search", "x", "--storage"],
        ["search", "--storage=sqlite:///f"],
    ],
)  # fmt: skip
def test_any_other_command_stays(words: list[str]) -> None:
    assert without_passwords(words) == (words, {})
