"""Where in a pasted command SGLang's own arguments begin, and which environment reaches it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from spectune.counts import count
from spectune.engines.sglang.launch_line.launch_environment import (
    Launch,
    drop_assignments,
    export,
    only_assignments,
    read_prefix,
    unknown_environment,
    unset,
)
from spectune.engines.sglang.launch_line.shell_words import ShellText, Word
from spectune.engines.sglang.launch_line.unit_file import as_script, environment_files
from spectune.engines.sglang.resolution import Finding
from spectune.errors import SpectuneError
from spectune.printable import printable

_MODULES = {"sglang.launch_server", "sglang.srt.entrypoints.http_server"}
_DEEPEST = 8  # `bash -c` inside `ssh` inside …


def find_in_text(text: str, *, depth: int = 0) -> Launch:
    """Return the first launch in a shell text.

    Raises:
        SpectuneError: When it has none, or is not closed.
    """
    shell = ShellText(as_script(text))
    exported: dict[str, str] = {}
    found: list[Launch] = []
    for words in shell.commands():
        rest = drop_assignments(words, shell.variables if only_assignments(words) else {})
        if rest and rest[0].text in ("export", "declare", "typeset"):
            export(rest[1:], shell.variables, exported)
        elif rest and rest[0].text == "unset":
            unset(rest[1:], shell.variables, exported)
        elif rest and (launch := _find(words, exported, depth)) is not None:
            found.append(launch)
    if not found:
        raise no_launch(text)
    first = replace(found[0], more=len(found) - 1)
    if shell.broken_continuations:
        first.findings.append(
            Finding(
                "broken-continuation", "warning",
                f"blanks follow the backslash at the end of {count(shell.broken_continuations, 'line')}: a shell ends "
                "the command there; they are read as if they went on",
                "delete the blanks after the backslash",
            )
        )  # fmt: skip
    first.findings.extend(unknown_environment(f"the file {printable(file, 60)}") for file in environment_files(text))
    if shell.assumed:
        first.findings.append(
            Finding(
                "assumed-default", "info",
                f"read as their defaults: {printable(', '.join(dict.fromkeys(shell.assumed)), 200)}",
                "the variables of the shell that runs it come before them",
            )
        )  # fmt: skip
    return first


def find_in_words(words: Sequence[str]) -> Launch:
    """Return the launch in words that a shell has split already.

    Raises:
        SpectuneError: When there is none.
    """
    launch = _find([Word(word) for word in words], {}, 0)
    if launch is None:
        raise no_launch(" ".join(words))
    return launch


def no_launch(text: str) -> SpectuneError:
    """Say that `text` is no launch of SGLang."""
    return SpectuneError(
        f"{printable(text.strip(), 60)!r} is no launch of SGLang: give `python -m sglang.launch_server …`, "
        "`sglang serve …` or its arguments alone, after --, or pipe in a script or a file for --config"
    )


def _find(words: Sequence[Word], exported: dict[str, str], depth: int) -> Launch | None:
    own = dict(exported)
    rest = drop_assignments(words, own)
    if rest and rest[0].text.startswith("-") and not rest[0].text.startswith("-m"):
        return Launch(tuple(rest), own)
    begin = _after_marker(rest)
    if begin is None:
        return _inside(rest, own, depth)
    launch = Launch(tuple(rest[begin:]), own, serve=begin > 0 and rest[begin - 1].text == "serve")
    read_prefix(rest[:begin], launch)
    return launch


def _after_marker(words: Sequence[Word]) -> int | None:
    """Return where SGLang's arguments begin, None when no word starts it."""
    for place, word in enumerate(words):
        name = PurePosixPath(word.text).name
        before = words[place - 1].text if place else ""
        if word.text.removeprefix("-m") in _MODULES and (before == "-m") == (word.text in _MODULES):
            return place + 1
        if name == "launch_server.py":
            return place + 1
        if name == "sglang" and place + 1 < len(words) and words[place + 1].text == "serve":
            return place + 2
    return None


def _inside(words: Sequence[Word], env: dict[str, str], depth: int) -> Launch | None:
    """Look into a quoted script, as of `bash -c "…"`."""
    for place, word in enumerate(words):
        if "sglang" not in word.text or not re.search(r"\s", word.text):
            continue
        if depth >= _DEEPEST:
            raise SpectuneError(f"the command is quoted more than {_DEEPEST} times: give the innermost one")
        launch = find_in_text(word.text, depth=depth + 1)
        outer = Launch((), dict(env))
        read_prefix(words[:place], outer)
        return replace(
            launch,
            env={**outer.env, **launch.env},
            container=outer.container or launch.container,
            findings=[*outer.findings, *launch.findings],
        )
    return None
