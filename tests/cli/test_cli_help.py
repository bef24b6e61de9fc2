"""`--help` of every command: what a newcomer reads first."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from forked import spectune

from spectune.cli.program import ORDER, app

importlib.import_module("spectune.cli.commands")  # registers them
GROUP: Any = typer.main.get_command(app)


def commands(group: Any, *before: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words."""
    for name, command in group.commands.items():
        yield (*before, name), command
        if hasattr(command, "commands"):
            yield from commands(command, *before, name)


ALL = dict(commands(GROUP))


def test_commands_are_listed_by_need() -> None:
    assert set(ORDER) == set(GROUP.commands)
    listed = spectune("--help", COLUMNS="80").stdout.partition("Commands:")[2].split("\n")
    assert [line.split()[0] for line in listed if line.startswith("  ")] == list(ORDER)


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_option_says_what_it_is(words: tuple[str, ...]) -> None:
    command = ALL[words]
    assert command.help.rstrip().endswith(".")
    for option in command.params:
        assert option.help, option.name
        assert option.help.endswith("."), option.name


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("words", [(), *ALL], ids=lambda words: " ".join(words) if isinstance(words, tuple) else words)
def test_help_fits(
    words: tuple[str, ...], columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    GROUP.main([*words, "--help"], prog_name="spectune", standalone_mode=False)
    text = capsys.readouterr().out
    assert text.startswith("Usage: spectune")
    assert max(map(len, text.splitlines())) <= int(columns)
    assert "<int" not in text, "a number says what it is of"
    assert "<float" not in text, "or its unit"


def test_exit_codes_are_told_once_for_all() -> None:
    told = [words for words, command in ALL.items() if "xit code 2" in command.help or "130" in command.help]
    assert told == []
    assert "2 bad input or environment" in " ".join(spectune("--help", COLUMNS="80").stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("search", "quickstart", "--place", "rack-4"), "--place is for a study that several workers share"),
        (("search", "quickstart", "--takeover-after", "1m"), "--takeover-after is for a study that several workers"),
        (
            ("search", "quickstart", "--engine", "simulated", "--virtual", "--torch-index", "u"),
            "--torch-index u is for",
        ),
        (("init", "--model", "m", "--runtime", "cpu-reference", "--gpus", "4"), "--gpus is for an SGLang on GPUs"),
        (("simulate", "--predict", "--port", "1"), "--port is for serving"),
        (("simulate", "--concurrency", "8"), "--concurrency is for --predict"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = spectune(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "leave" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_of_a_whole_command_names_what_it_makes_no_use_of(tmp_path: Path) -> None:
    words = ("search", "quickstart", "--engine", "simulated", "--dry-run", "--study", "mine", "--nodes", "2")
    done = spectune(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "note: a dry run makes no use of --study and --nodes" in done.stderr
