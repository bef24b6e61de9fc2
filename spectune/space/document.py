"""A YAML file as plain values that still know the line each of them stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from spectune.errors import InputProblems, Problem
from spectune.space.dialect import Loader
from spectune.space.tree import Tree, TreeError

KeyPath = tuple[str | int, ...]

MAX_BYTES = 256 * 1024


@dataclass(frozen=True)
class Document:
    """What a file says, and where.

    Attributes:
        file: The file as it was named.
        text: All of it.
        data: Its top-level mapping as plain dicts, lists and scalars.
        key_lines: Path of a mapping entry → 1-based line of its key.
        value_lines: Path of any value → 1-based line on which it starts.
        texts: Path of a scalar → its text as written, without quotes.
        problems: What is wrong with the YAML itself although it could be read, such as duplicated keys.
    """

    file: Path
    text: str
    data: dict[str, Any]
    key_lines: Mapping[KeyPath, int]
    value_lines: Mapping[KeyPath, int]
    texts: Mapping[KeyPath, str]
    problems: tuple[Problem, ...] = ()

    def line_of(self, path: KeyPath) -> int:
        """Return the line of the key at `path`, of a list item, or of the nearest enclosing entry that exists."""
        for end in range(len(path), 0, -1):
            line = self.key_lines.get(path[:end], self.value_lines.get(path[:end]))
            if line is not None:
                return line
        return 1

    def problem(self, path: KeyPath, message: str) -> Problem:
        """Return a problem with the thing at `path`."""
        return Problem(message, self.file, self.line_of(path))


def read_document(file: Path) -> Document:
    """Read a YAML file.

    Raises:
        InputProblems: It cannot be opened, is too large, is not UTF-8, does not parse or is not a mapping.
    """
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputProblems([Problem(f"cannot be read: {error.strerror or error}", file)]) from error
    if len(raw) > MAX_BYTES:
        raise InputProblems([Problem(f"is larger than {MAX_BYTES // 1024} KiB: not a file of this kind", file)])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise InputProblems([Problem(message, file, line)]) from error
    return parse_document(text, file)


def parse_document(text: str, file: Path) -> Document:
    """Parses YAML text that stands, or is to be reported as standing, in `file`.

    Raises:
        InputProblems: It does not parse, is empty, or is not a mapping.
    """
    node = _compose(text, file)
    tree = Tree(file)
    try:
        data = tree.plain(node, ())
    except TreeError as error:
        raise InputProblems([error.problem]) from error
    if not isinstance(data, dict):
        raise InputProblems([Problem(f"must be a mapping of names to values, but is a {type(data).__name__}", file, 1)])
    return Document(file, text, data, tree.key_lines, tree.value_lines, tree.texts, tuple(tree.problems))


def _compose(text: str, file: Path) -> yaml.Node:
    try:
        node = yaml.compose(text, Loader=Loader)
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        message = f"character U+{ord(text[error.position]):04X} is not allowed in YAML"
        raise InputProblems([Problem(message, file, line)]) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        parts = [part for part in (error.context, error.problem) if part]
        message = f"is not valid YAML: {', '.join(parts)}"
        raise InputProblems([Problem(message, file, mark.line + 1 if mark else None)]) from error
    except RecursionError as error:
        raise InputProblems([Problem("is nested too deeply", file)]) from error
    if node is None:
        raise InputProblems([Problem("is empty", file)])
    return node
