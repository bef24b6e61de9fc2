"""A launch command somebody already uses, as the arguments and the environment SGLang would be given.

Nothing of the input is executed, and nothing outside it is read but the file of `--config`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from spectune.engines.sglang.launch_line.argument_parser import ArgumentParser
from spectune.engines.sglang.launch_line.launch_config import (
    ConfigElsewhere,
    ConfigRefused,
    config_in_text,
    config_words,
    merge,
    without_config,
)
from spectune.engines.sglang.launch_line.launch_environment import Launch
from spectune.engines.sglang.launch_line.launch_lists import words_in_list
from spectune.engines.sglang.launch_line.launch_words import find_in_text, find_in_words
from spectune.engines.sglang.launch_line.older_names import (
    gone_variables,
    named_version,
    other_version,
)
from spectune.engines.sglang.launch_line.option_reading import Reading, read_options
from spectune.engines.sglang.launch_line.parser_findings import (
    after_reading,
    left_out,
)
from spectune.engines.sglang.launch_line.shell_words import Word
from spectune.engines.sglang.options import SHIPPED_VERSION, Options
from spectune.engines.sglang.resolution import Finding
from spectune.engines.sglang.rules.names import MODEL
from spectune.errors import SpectuneError
from spectune.printable import printable

GREATEST = 2**63 - 1
LONGEST = 2**20  # characters; the kernel passes no longer command to a program either
MOST_WORDS = 4096
_FENCE = re.compile(r"^[ \t]*```.*$", re.MULTILINE)  # around code in Markdown
_LEFT_OUT = {"unknown-value", "unknown-words"}
# Refusals whose way out is known, so that the rest of the command can be explained all the same.
_MENDABLE = {"renamed-option", "newer-option", "missing-model", "help"}


@dataclass(frozen=True)
class LaunchLine:
    """What a command would pass to SGLang.

    Attributes:
        arguments: SGLang's long option names without dashes → python values, renamed options under their new names.
        env: Variables the command sets.
        findings: What was noticed while reading; `fatal` ones are refusals of SGLang's own parser, the one it would
            print first.
        container: Whether the command runs in a container, where paths mean other files.
        version: The SGLang it was judged by.
    """

    arguments: Mapping[str, Any]
    env: Mapping[str, str]
    findings: tuple[Finding, ...]
    container: bool = False
    version: str = SHIPPED_VERSION

    @property
    def refused(self) -> bool:
        """Whether SGLang's parser ends the launch."""
        return any(finding.severity == "fatal" for finding in self.findings)

    @property
    def incomplete(self) -> bool:
        """Whether arguments had to be left out, because only a running shell or another machine knows them."""
        return any(finding.rule in _LEFT_OUT for finding in self.findings)

    @property
    def complete(self) -> bool:
        """Whether `arguments` holds what the command means once its refusals are mended."""
        return all(finding.rule in _MENDABLE for finding in self.findings if finding.severity == "fatal")


def read_launch(
    command: str | Sequence[str],
    *,
    cwd: Path | None = None,
    version: str | None = None,
) -> LaunchLine:
    """Read a command as text of a shell, or as the words a shell has made of it.

    Args:
        command: One text, or words; a single word with blanks in it is a text. A text may be a file for `--config`.
        cwd: The folder that relative paths start from.
        version: The SGLang to judge it by; None for that of the image or the package in the command, or the shipped.

    Raises:
        SpectuneError: When there is no launch in it.
    """
    if not isinstance(command, str) and len(command) == 1 and len(command[0].split()) > 1:
        command = command[0]
    length = len(command) if isinstance(command, str) else sum(map(len, command))
    if length > LONGEST:
        raise SpectuneError(f"a command of {length} characters is longer than any launch, at most {LONGEST}")
    parser = _shipped_parser()
    entries = config_in_text(command, parser) if isinstance(command, str) else None
    launch = _find(command) if entries is None else Launch(())
    if len(launch.words) > MOST_WORDS:
        raise SpectuneError(f"a command of {len(launch.words)} words is longer than any launch, at most {MOST_WORDS}")
    words = _model_first(launch)
    text = command if isinstance(command, str) else " ".join(command)
    version = version or named_version(text) or SHIPPED_VERSION
    launch.findings.extend(other_version(text, version))
    reading = Reading(parser, version, notes=list(launch.findings))
    try:
        if entries is None:
            added, own = merge(words, parser, cwd or Path.cwd())
        else:
            added, own = config_words(entries, parser), []
    except ConfigRefused as refused:
        reading.troubles.append((0, Finding("config-file", "fatal", printable(str(refused)), "mend the file")))
        added, own = [], without_config(words)
    except ConfigElsewhere as elsewhere:
        reading.notes.append(left_out("--config", str(elsewhere), "its file is not on this machine"))
        added, own = [], without_config(words)
    read_options(added, reading, from_config=True)
    read_options(own, reading, from_config=False)
    return _line(reading, launch)


def _find(command: str | Sequence[str]) -> Launch:
    if not isinstance(command, str):
        return find_in_words([_clean(word) for word in command])
    text = _FENCE.sub("", _clean(command)).strip()
    if text[:1] == text[-1:] == "`" and text.count("`") == 2:  # quoted as in Markdown
        text = text[1:-1]
    listed = words_in_list(text)
    if listed is None:
        return find_in_text(text)
    return replace(find_in_words(listed), container=not text.startswith("["))


@cache
def _shipped_parser() -> ArgumentParser:
    return ArgumentParser(Options.shipped())


def _clean(text: str) -> str:
    """Replace halves of characters, which file names may hold and no output takes."""
    if "\0" in text:
        raise SpectuneError("no command holds null bytes, but this text does; a file in UTF-16 is to be saved as UTF-8")
    return text.encode("utf-8", "replace").decode("utf-8")


def _model_first(launch: Launch) -> list[Word]:
    words = list(launch.words)
    if launch.serve and words and not words[0].text.startswith("-"):
        words.insert(0, Word(f"--{MODEL}"))
    for place, word in enumerate(words):
        if launch.serve and word.text.split("=")[0] == "--model-type":
            wide = 1 if "=" in word.text else 2
            kind = word.text.split("=")[1] if wide == 1 else "".join(w.text for w in words[place + 1 : place + 2])
            if kind not in ("auto", "llm"):
                raise SpectuneError(f"only language model servers are explained, but --model-type is {printable(kind)}")
            return [*words[:place], *words[place + wide :]]
    return words


def _line(reading: Reading, launch: Launch) -> LaunchLine:
    arguments, findings = after_reading(reading.uses)
    for name, value in arguments.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int) and abs(item) > GREATEST:
                raise SpectuneError(f"--{name} {printable(str(item), 60)} is a count of nothing: at most {GREATEST}")
    tried = {MODEL} & reading.unknown or any(f.message.startswith("argument --model-path") for _, f in reading.troubles)
    if MODEL not in arguments and not tried:
        message = "the following arguments are required: --model-path/--model"
        reading.troubles.append((3, Finding("missing-model", "fatal", message, "add --model-path FOLDER_OR_NAME")))
    if launch.more:
        message = f"{launch.more} further launches in the same text were not read"
        reading.notes.append(Finding("more-launches", "warning", message, "explain them one at a time"))
    refusals = [finding for _, finding in sorted(reading.troubles, key=lambda trouble: trouble[0])]
    refusals += [finding for finding in findings if finding.severity == "fatal"]
    notes = [
        *reading.notes,
        *(finding for finding in findings if finding not in refusals),
        *gone_variables(launch.env, reading.version),
    ]
    return LaunchLine(arguments, dict(launch.env), (*refusals, *notes), launch.container, reading.version)
