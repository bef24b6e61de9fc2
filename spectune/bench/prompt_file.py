"""Prompts from a file: JSON lines, or one JSON list."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from spectune.bench.prompt_entry import Turns, read_entry
from spectune.bench.prompts import Prompt
from spectune.errors import InputProblems, Problem, SpectuneError

_SHOWN_PROBLEMS = 20
_NO_JSON = {
    b"\x1f\x8b": "compressed by gzip", b"\x28\xb5\x2f\xfd": "compressed by zstd", b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz", b"PK\x03\x04": "a zip archive", b"PAR1": "a Parquet table",
    b"\xff\xfe": "in UTF-16", b"\xfe\xff": "in UTF-16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PromptFile:
    """The distinct prompts of a file.

    Attributes:
        prompts: In the order of the file.
        duplicates: How many repeated an earlier one and were removed.
        empty: How many conversations asked nothing and were left out.
        times_s: Timestamps of the entries in ascending order, those of duplicates too; empty unless all have one.
        sha256: Of its bytes, in hexadecimal.
    """

    prompts: tuple[Prompt, ...]
    duplicates: int
    empty: int = 0
    times_s: tuple[float, ...] = ()
    sha256: str = ""


def read_prompt_file(path: Path, turns: Turns = "last") -> PromptFile:
    """Read JSON lines or a JSON list; every entry is laid out in one of the ways `read_entry` knows.

    Empty lines are skipped; other keys are left alone, because data sets carry their own. A prompt's class is the
    entry's `class`, or the file's name without its ending.

    Raises:
        SpectuneError: If the file cannot be read or holds no prompt, or only one.
        InputProblems: The entries that are no prompts, with their lines.
    """
    raw_content = _content(path)
    content = raw_content.removeprefix(b"\xef\xbb\xbf")
    prompts: dict[tuple[str, ...], Prompt] = {}
    times: list[float | None] = []
    problems: list[Problem] = []
    found = empty = 0
    whole = content.lstrip().startswith(b"[")
    for number, raw in _listed(content, path) if whole else _lines(content):
        try:
            data = raw if whole else _parsed(raw)
            entry = read_entry(data, f"{path.name}:{number}", path.stem, turns)
        except ValueError as error:
            line = _line_of_entry(content, number) if whole and len(problems) < _SHOWN_PROBLEMS else number
            problems.append(Problem(str(error), path, line))
            continue
        times.append(entry.time_s)
        found += len(entry.prompts)
        empty += not entry.prompts
        for prompt in entry.prompts:
            prompts.setdefault(prompt.content, prompt)
    if problems:
        raise InputProblems(_the_first(problems, path))
    if not prompts:
        raise SpectuneError(f'{path}: no prompt in it; a line looks like {{"prompt": "Write a haiku."}}')
    if len(prompts) == 1:
        raise SpectuneError(
            f"{path}: only one prompt in it; requests that are all the same say nothing about traffic, and come from "
            "the prefix cache: give at least as many as requests are in flight"
        )
    stamps = [time for time in times if time is not None]
    times_s = tuple(sorted(stamps)) if len(stamps) == len(times) else ()
    sha256 = hashlib.sha256(raw_content).hexdigest()
    return PromptFile(tuple(prompts.values()), found - len(prompts), empty, times_s, sha256)


def _content(path: Path) -> bytes:
    try:
        # Reading a pipe would wait for its writer, a device may never end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise SpectuneError(f"cannot read the prompts {path}: it is not a regular file; name a JSON or JSONL file")
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = error.strerror if isinstance(error, OSError) else None
        raise SpectuneError(f"cannot read the prompts {path}: {reason or error}") from None
    for begins, kind in _NO_JSON.items():
        if content.startswith(begins):
            raise SpectuneError(f"cannot read the prompts {path}: it is {kind}; make it JSON or JSONL in UTF-8")
    return content


def _lines(content: bytes) -> Iterator[tuple[int, Any]]:
    lines = enumerate(content.split(b"\n"), start=1)
    return ((number, line) for number, line in lines if line.strip())


def _listed(content: bytes, path: Path) -> Iterator[tuple[int, Any]]:
    try:
        entries = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InputProblems([Problem(f"not valid JSON: {error.msg}", path, error.lineno)]) from None
    return iter(enumerate(entries, start=1))


def _parsed(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error.msg}") from None


def _line_of_entry(content: bytes, number: int) -> int | None:
    """The line on which the `number`-th entry of a JSON list begins; None behind one too deep for Python's reader."""
    text = content.decode()
    at, read = text.index("[") + 1, json.JSONDecoder()
    for turn in range(number):
        while text[at] in " \t\r\n,":
            at += 1
        if turn < number - 1:
            try:
                _, at = read.raw_decode(text, at)
            except RecursionError:
                return None
    return text.count("\n", 0, at) + 1


def _the_first(problems: list[Problem], path: Path) -> list[Problem]:
    more = len(problems) - _SHOWN_PROBLEMS
    return problems if more <= 0 else [*problems[:_SHOWN_PROBLEMS], Problem(f"and {more:,} more like these", path)]
