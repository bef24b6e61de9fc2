"""SGLang's own argparse parser, rebuilt from its options table: same spellings, same refusals, same words.

Every option with its values is parsed by itself, so that all mistakes of a command are found at once where the engine
stops at the first.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NoReturn

from spectune.engines.sglang.launch_line.argument_types import TYPES
from spectune.engines.sglang.options import Option, Options

_PROGRAM = "sglang serve"
_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class Refused(Exception):
    """The parser's own message."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(message)


class _Record(argparse.Action):
    """Notes one use of an option instead of keeping the last value only."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
        option_string: str | None = None,
    ) -> None:  # fmt: skip
        del parser
        namespace.used = (self.dest, option_string, values)


@dataclass(frozen=True)
class Use:
    """One use of an option, read without complaint.

    Attributes:
        name: Its long name without dashes.
        spelling: As SGLang resolves what was written, dashes included.
        value: The python value.
    """

    name: str
    spelling: str
    value: Any


@dataclass(frozen=True)
class Trouble:
    """What SGLang's parser refuses.

    Attributes:
        kind: `ambiguous`, `value` (wrong, missing or too many), or `unrecognized`.
        message: argparse's message.
        words: The words concerned.
    """

    kind: Literal["ambiguous", "value", "unrecognized"]
    message: str
    words: tuple[str, ...]


class ArgumentParser:
    """The parser of one SGLang version."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.spellings: dict[str, list[str]] = {}
        for spelling, option in options.by_name.items():
            self.spellings.setdefault(option.name, []).append(f"--{spelling}")
        self._alone: dict[str, _Parser] = {}
        self._known = {"-h", "--help"} | {word for words in self.spellings.values() for word in words}

    @cached_property
    def _argparse(self) -> _Parser:
        parser = _Parser(prog=_PROGRAM, add_help=False)
        parser.add_argument("-h", "--help", dest="help", nargs=0, action=_Record)
        for name in self.spellings:
            self._add(parser, name)
        return parser

    def _add(self, parser: _Parser, name: str) -> None:
        option = self.options.by_name[name]
        read = _reader(option)
        given: dict[str, Any] = {"nargs": option.nargs, "dest": name, "action": _Record}
        if option.nargs != 0:
            given |= {"type": read, "choices": _choices(option, read)}
        if option.nargs == "?":
            given["const"] = ""
        parser.add_argument(*self.spellings[name], **given)

    def _parser_for(self, word: str) -> _Parser:
        """Return a parser that reads `word` as SGLang's does: one of that option alone, where it can mean no other.

        argparse goes through all options for every text it reads, hundreds of them for each of a command's.
        """
        meant = self.matches(word)
        option = self.options.by_name.get(meant[0].removeprefix("--")) if len(meant) == 1 else None
        if option is None:
            return self._argparse
        if option.name not in self._alone:
            alone = self._alone[option.name] = _Parser(prog=_PROGRAM, add_help=False)
            self._add(alone, option.name)
        return self._alone[option.name]

    def groups(self, words: Sequence[str]) -> list[list[int]]:
        """Return the places of each option's words; words before the first option are a group of their own."""
        groups: list[list[int]] = []
        rest = False
        for place, word in enumerate(words):
            if not groups or (not rest and word != "--" and self._is_option(word)):
                groups.append([])
            rest = rest or word == "--"
            groups[-1].append(place)
        return groups

    def _is_option(self, word: str) -> bool:
        if len(word) < 2 or word[0] != "-":
            return False
        if word in self._known or self.matches(word):
            return True
        return not (_NEGATIVE_NUMBER.fullmatch(word) or " " in word)

    def matches(self, word: str) -> list[str]:
        """Return every spelling that `word` could mean: itself, or those it begins."""
        prefix = word.split("=", 1)[0]
        if prefix in self._known:
            return [prefix]
        if not word.startswith("--"):
            return ["-h"] if word.startswith("-h") else []
        everything = ("--help", *(one for spellings in self.spellings.values() for one in spellings))
        return [spelling for spelling in everything if spelling.startswith(prefix)]

    def read(self, group: Sequence[str]) -> tuple[Use | None, list[Trouble]]:
        """Parse one option and the words after it."""
        words = tuple(group)
        if not self._is_option(words[0]):
            return None, [_unrecognized(words)]
        namespace = argparse.Namespace(used=None)
        try:
            _, extra = self._parser_for(words[0]).parse_known_args(list(words), namespace)
        except Refused as refused:
            ambiguous = len(self.matches(words[0])) > 1
            return None, [Trouble("ambiguous" if ambiguous else "value", str(refused), words)]
        troubles = [_unrecognized(tuple(extra))] if extra else []
        if namespace.used is None:
            return None, troubles
        name, spelling, value = namespace.used
        if name != "help" and self.options.by_name[name].nargs == 0:
            value = not spelling.startswith("--no-")
        return Use(name, spelling, value), troubles


def _unrecognized(words: tuple[str, ...]) -> Trouble:
    return Trouble("unrecognized", f"unrecognized arguments: {' '.join(words)}", words)


def _reader(option: Option) -> Callable[[str], Any]:
    return TYPES.get(option.kind, str)


def _choices(option: Option, read: Callable[[str], Any]) -> list[Any] | None:
    return None if option.choices is None else [read(choice) for choice in option.choices]
