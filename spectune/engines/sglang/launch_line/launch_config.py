"""What stands in a file for `--config`: the words SGLang puts before the command line's own, or why it dies of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from spectune.engines.sglang.launch_line.argument_parser import ArgumentParser
from spectune.engines.sglang.launch_line.shell_words import Word

_FLAG = "--config"
_NO_PLAIN_ACTION = {"lora-paths", "disable-cuda-graph", "enable-dp-attention"}
_LARGEST = 4 * 2**20  # bytes
_LARGEST_TEXT = 2**16  # characters; YAML takes seconds for more, and whoever pastes options has fewer
_ENTRY = re.compile(r"[A-Za-z][\w-]*[ \t]*:([ \t]|$)")


class ConfigRefused(Exception):
    """Why SGLang does not start with this file, in its own words where it has some."""


class ConfigElsewhere(Exception):
    """The file is not on this machine."""


def merge(words: Sequence[Word], parser: ArgumentParser, cwd: Path) -> tuple[list[Word], list[Word]]:
    """Return the file's words, and those of the command line without `--config FILE`; SGLang reads the former first.

    Raises:
        ConfigRefused: For what SGLang itself refuses.
        ConfigElsewhere: When the file is not here.
    """
    places = [place for place, word in enumerate(words) if word.text == _FLAG]
    if not places:
        return [], list(words)
    if len(places) > 1:
        raise ConfigRefused("Multiple config files specified! Only one allowed.")
    place = places[0]
    if place == len(words) - 1:
        raise ConfigRefused("No config file specified after --config flag!")
    named = words[place + 1]
    if named.unknown:
        raise ConfigElsewhere(named.text)
    path = Path(named.text)
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise ConfigRefused(f"Config file must be YAML format, got: {path.suffix}")
    return config_words(_load(path, cwd), parser), [*words[:place], *words[place + 2 :]]


def config_words(given: Mapping[Any, Any], parser: ArgumentParser) -> list[Word]:
    """Return the words that a file's entries become.

    Raises:
        ConfigRefused: For what SGLang itself refuses.
    """
    return [Word(word) for key, value in given.items() for word in _words(str(key), value, parser)]


def config_in_text(text: str, parser: ArgumentParser) -> Mapping[Any, Any] | None:
    """Return the entries of a text that is such a file itself; None where it is none, or has no option of SGLang's."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith(("#", "---")))
    if len(text) > _LARGEST_TEXT or _ENTRY.match(next(lines, "")) is None:
        return None
    try:
        given = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    named = isinstance(given, dict) and any(_option_name(key) in parser.options.by_name for key in given)
    return given if named else None


def without_config(words: Sequence[Word]) -> list[Word]:
    """Return the words without `--config FILE`."""
    kept: list[Word] = []
    skip = False
    for word in words:
        if not skip and word.text != _FLAG:
            kept.append(word)
        skip = word.text == _FLAG
    return kept


def _load(named: Path, cwd: Path) -> dict[Any, Any]:
    try:
        file = cwd / named.expanduser()
        if not file.is_file():
            raise ConfigElsewhere(str(named))
        if file.stat().st_size > _LARGEST:
            raise ConfigRefused(f"{named}: larger than {_LARGEST // 2**20} MiB, which no list of options is")
        given = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise ConfigRefused(f"{named}{line}: {getattr(error, 'problem', None) or 'not YAML'}") from None
    except (OSError, ValueError, RuntimeError) as error:  # a home that is not known, a null byte, too deep a nesting
        raise ConfigRefused(f"{named}: cannot be read: {error}") from None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ConfigRefused(f"{named}: Config file must contain a dictionary at root level")
    return given


def _words(key: str, value: Any, parser: ArgumentParser) -> list[str]:
    option = parser.options.by_name.get(_option_name(key))
    switch = option is not None and option.nargs == 0
    if option is not None and _unsupported(option.name, parser):
        raise ConfigRefused(f"Unsupported config option '{key.replace('-', '_')}'")
    flag = f"--{key}"
    if isinstance(value, bool):
        if switch:
            return [flag] if value else []
        return [flag, str(value).lower()]
    if isinstance(value, list):
        return [flag, *map(str, value)] if value else []
    if isinstance(value, dict):
        return [flag, json.dumps(value, default=str)]
    return [flag, str(value)]


def _option_name(key: Any) -> str:
    return str(key).replace("_", "-")


def _unsupported(name: str, parser: ArgumentParser) -> bool:
    """Whether SGLang's merger refuses the option: neither a plain switch nor one that stores its values."""
    negatable = any(spelling.startswith("--no-") for spelling in parser.spellings[name])
    return negatable or name in _NO_PLAIN_ACTION
