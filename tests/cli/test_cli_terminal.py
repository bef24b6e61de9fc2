"""What other people's words may do to a terminal: nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from forked import spectune
from rich.table import Table
from rich.text import Text

from spectune.cli.terminal import OUT, TimeLeft

SPECTUNE = str(Path(sys.executable).with_name("spectune"))
HOSTILE = "a\x1b]0;title\x07b\u202ec\x9b31m\u2028d\tτ\u202f3"


def table_of(*cells: str | Text) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(*cells)
    return table


@pytest.mark.parametrize(
    "thing", [HOSTILE, Text(HOSTILE, style="bold").append(" end", style="red"), table_of(HOSTILE, Text(HOSTILE))]
)
def test_no_control_character_reaches_the_terminal(thing: str | Text | Table) -> None:
    with OUT.capture() as captured:
        OUT.print(thing, markup=False, soft_wrap=True)
    shown = captured.get()
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\u2028"} & set(shown)
    assert shown.startswith("a\N{REPLACEMENT CHARACTER}]0;title")
    assert "τ\u202f3" in shown


@pytest.mark.parametrize("thing", ["in /data:ok:1", table_of("in /data:ok:1")])
def test_words_between_colons_are_no_emoji(thing: str | Table) -> None:
    with OUT.capture() as captured:
        OUT.print(thing, markup=False)
    assert captured.get().strip() == "in /data:ok:1"


def test_a_reader_that_leaves_is_no_failure(tmp_path: Path) -> None:
    """As in `spectune … | head -1`, where the command prints more after the reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    figures = ["--baseline", "82.6", "--cycle-ms", "38", "--accept", "2.5"]
    done = subprocess.run(
        [SPECTUNE, "breakeven", *figures], stdout=writer, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pipe_gets_lines_that_are_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    words = "word " * 60 + "end"
    table = Table(box=None, show_header=False)
    table.add_row("a", Text(words))
    assert not OUT.is_terminal
    OUT.print(words)
    OUT.print(table)
    plain, row = capsys.readouterr().out.rstrip("\n").split("\n")
    assert plain == words
    assert words in row
    assert len(row.rstrip()) < 2 * len(words)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("--nope", ""), ("--jsn", "--json"), ("--trial", "--trials"), ("--dryrun", "--dry-run"), ("--slrum", "--slurm")],
)
def test_only_an_option_that_may_be_meant_is_suggested(tmp_path: Path, written: str, meant: str) -> None:
    done = spectune("search", written, cwd=tmp_path)
    assert done.returncode == 2
    said = f"No such option: {written}" + (f" (Possible options: {meant})" if meant else "")
    assert done.stderr.splitlines()[-1] == f"Error: {said}"


def test_how_long_the_rest_may_take_is_said_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    told = TimeLeft(4, "prompts answered", every_s=0.0)
    for done in range(1, 5):
        told(done)
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in said] == [f"{done} of 4 prompts answered" for done in (1, 2, 3)]
    TimeLeft(4, "prompts answered", every_s=60.0)(1)
    assert capsys.readouterr().err == ""
