"""What stands before SGLang in a command: assignments, `env`, a container's options; the rest changes nothing here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from spectune.engines.sglang.launch_line.shell_words import Word
from spectune.engines.sglang.resolution import Finding
from spectune.errors import SpectuneError
from spectune.printable import printable
from spectune.withheld import secret_name

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_APPENDED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)", re.DOTALL)  # as shells assign, `NAME+=VALUE` too
LONGEST = 2**20  # characters of a variable
_CONTAINERS = {"docker", "podman", "nerdctl", "singularity", "apptainer", "enroot", "kubectl"}
_ENV_OPTIONS_WITH_VALUE = {"-u", "--unset", "-C", "--chdir"}


@dataclass
class Launch:
    """A launch found in a text.

    Attributes:
        words: SGLang's arguments.
        env: Variables that the command sets for it.
        container: Whether it runs in a container, which has paths of its own.
        serve: Whether it is `sglang serve`, which takes the model without `--model-path`.
        findings: What was left out on the way.
        more: Further launches in the same text, which were not read.
    """

    words: tuple[Word, ...]
    env: dict[str, str] = field(default_factory=dict)
    container: bool = False
    serve: bool = False
    findings: list[Finding] = field(default_factory=list)
    more: int = 0


def read_prefix(words: Sequence[Word], launch: Launch) -> None:
    """Apply what stands before SGLang: `env`, a container's `-e`, and other wrappers, which change nothing here."""
    place = 0
    while place < len(words):
        name = PurePosixPath(words[place].text).name
        place += 1
        if name == "env":
            place = _env(words, place, launch)
        elif name in _CONTAINERS and not launch.container:
            launch.container = True
            _leave_outside(launch)
        elif launch.container:
            place = _container_option(words, place - 1, launch)


def _env(words: Sequence[Word], place: int, launch: Launch) -> int:
    while place < len(words):
        text = words[place].text
        assignment = _ASSIGNMENT.fullmatch(text)
        if text in ("-i", "-", "--ignore-environment"):
            launch.env.clear()
        elif text in _ENV_OPTIONS_WITH_VALUE:
            place += 1
            if text in ("-u", "--unset") and place < len(words):
                launch.env.pop(words[place].text, None)
        elif text.startswith("--unset="):
            launch.env.pop(text.removeprefix("--unset="), None)
        elif assignment:
            _set(launch, assignment[1], assignment[2], words[place])
        elif not text.startswith("-"):
            return place
        place += 1
    return place


def _container_option(words: Sequence[Word], place: int, launch: Launch) -> int:
    text = words[place].text
    value: str | None = None
    if text in ("-e", "--env") and place + 1 < len(words):
        place += 1
        value = words[place].text
    elif text.startswith("--env="):
        value = text.removeprefix("--env=")
    elif re.fullmatch(r"-e[A-Za-z_]\w*(=.*)?", text, re.DOTALL):
        value = text.removeprefix("-e")
    elif text.split("=")[0] == "--env-file":
        launch.findings.append(unknown_environment("the file of --env-file"))
    if value is not None:
        assignment = _ASSIGNMENT.fullmatch(value)
        if assignment:
            _set(launch, assignment[1], assignment[2], words[place])
        elif _matters(value):
            launch.findings.append(unknown_environment(f"{printable(value, 60)}, taken from the shell that starts it"))
    return place + 1


def _leave_outside(launch: Launch) -> None:
    """Variables set for `docker` itself do not reach what runs in the container."""
    if launch.env:
        names = ", ".join(printable(name, 60) for name in launch.env)
        launch.findings.append(
            Finding(
                "env-outside-container", "warning", f"{names}: set for the container's starter, not inside it",
                "pass each with -e NAME=VALUE",
            )
        )  # fmt: skip
        launch.env.clear()


def _set(launch: Launch, name: str, value: str, word: Word) -> None:
    if not word.unknown:
        launch.env[name] = value
    elif _matters(name):
        launch.findings.append(unknown_environment(f"{name}={printable(value, 60)}"))


def _matters(name: str) -> bool:
    """Whether a variable can change what is said; keys and tokens cannot."""
    return not secret_name(name)


def unknown_environment(what: str) -> Finding:
    """Return the finding for variables whose values only another place knows."""
    return Finding(
        "unknown-environment", "info", f"environment not known here: {what}", "write NAME=VALUE before the command"
    )


def only_assignments(words: Sequence[Word]) -> bool:
    """Whether a command only assigns variables, which later commands then see."""
    return all(_APPENDED.fullmatch(word.text) for word in words)


def drop_assignments(words: Sequence[Word], into: dict[str, str]) -> list[Word]:
    """Return the words after the leading assignments, whose known values go `into` a mapping."""
    for place, word in enumerate(words):
        assignment = _APPENDED.fullmatch(word.text)
        if assignment is None:
            return list(words[place:])
        _assign(assignment, word, into)
    return []


def _assign(assignment: re.Match[str], word: Word, into: dict[str, str]) -> None:
    """Set a variable or add to it; one whose value only a running shell knows is not known any more."""
    name, more, value = assignment.groups()
    if word.unknown or (more and name not in into):
        into.pop(name, None)
    else:
        into[name] = (into[name] if more else "") + value
        if len(into[name]) > LONGEST:
            raise SpectuneError(f"{printable(name, 60)} grows beyond {LONGEST} characters")


def export(words: Sequence[Word], variables: dict[str, str], exported: dict[str, str]) -> None:
    """Apply the words after `export`."""
    for word in _names(words):
        assignment = _APPENDED.fullmatch(word.text)
        if assignment:
            _assign(assignment, word, variables)
        name = assignment[1] if assignment else word.text
        if name in variables:
            exported[name] = variables[name]


def unset(words: Sequence[Word], variables: dict[str, str], exported: dict[str, str]) -> None:
    """Apply the words after `unset`."""
    for word in _names(words):
        variables.pop(word.text, None)
        exported.pop(word.text, None)


def _names(words: Sequence[Word]) -> Iterator[Word]:
    return (word for word in words if not word.text.startswith("-"))
