"""Prompts from a JSONL file."""

# ruff: noqa: TRY004 (a line of a file is a wrong value whatever its type)

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from spectune.bench.prompts import Message, Prompt
from spectune.errors import InputProblems, Problem, SpectuneError

DEFAULT_CLASS = "file"
MOST_OUTPUT_TOKENS = 1_000_000  # as for a whole workload
_KEYS = ("prompt", "messages", "class", "output_tokens")


@dataclass(frozen=True, slots=True)
class PromptFile:
    """The distinct prompts of a file.

    Attributes:
        prompts: In the order of the file.
        duplicates: How many repeated an earlier one and were removed.
    """

    prompts: tuple[Prompt, ...]
    duplicates: int


def read_prompt_file(path: Path) -> PromptFile:
    """Read a JSONL file: an object per line with `prompt` or `messages`, optionally `class` and `output_tokens`.

    Empty lines are skipped; other keys are left alone, because data sets carry their own.

    Raises:
        SpectuneError: If the file cannot be read or holds no prompt.
        InputProblems: Every line that is not a prompt, with its number.
    """
    try:
        # Reading a pipe would wait for its writer, a device may never end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise SpectuneError(f"cannot read the prompts {path}: it is not a regular file; name a JSONL file")
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = error.strerror if isinstance(error, OSError) else None
        raise SpectuneError(f"cannot read the prompts {path}: {reason or error}") from None
    prompts: dict[tuple[str, ...], Prompt] = {}
    problems: list[Problem] = []
    read = 0
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        read += 1
        try:
            prompt = _prompt(line, f"{path.name}:{number}")
        except ValueError as error:
            problems.append(Problem(str(error), path, number))
        else:
            prompts.setdefault(prompt.content, prompt)
    if problems:
        raise InputProblems(problems)
    if not prompts:
        raise SpectuneError(f'{path}: no prompt in it; a line looks like {{"prompt": "Write a haiku."}}')
    return PromptFile(tuple(prompts.values()), read - len(prompts))


def _prompt(line: bytes, prompt_id: str) -> Prompt:
    try:
        data = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error.msg}") from None
    if not isinstance(data, dict):
        raise ValueError(f"a line must be an object with `prompt` or `messages`, but got {_kind(data)}")
    if ("prompt" in data) == ("messages" in data):
        raise ValueError(f"a line needs exactly one of `prompt` and `messages`, but has {_keys(data)}")
    text = _text(data["prompt"], "prompt") if "prompt" in data else None
    return Prompt(
        prompt_id=prompt_id,
        prompt_class=_text(data.get("class", DEFAULT_CLASS), "class"),
        text=text,
        messages=_messages(data["messages"]) if text is None else (),
        output_tokens=_output_tokens(data.get("output_tokens")),
    )


def _messages(value: Any) -> tuple[Message, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"`messages` must be a list of {{role, content}}, but got {_kind(value)}")
    messages: list[Message] = []
    for entry in value:
        if not isinstance(entry, dict):
            raise ValueError(f"a message must be an object with `role` and `content`, but got {_kind(entry)}")
        messages.append(Message(_text(entry.get("role"), "role"), _text(entry.get("content"), "content")))
    return tuple(messages)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"`{name}` must be a text that is not empty, but got {_kind(value)}")
    return value


def _output_tokens(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_OUTPUT_TOKENS:
        raise ValueError(
            f"`output_tokens` must be a whole number from 1 to {MOST_OUTPUT_TOKENS:,}, but got {_kind(value)}"
        )
    return value


def _kind(value: Any) -> str:
    shown = orjson.dumps(value).decode()
    return shown if len(shown) <= 40 else f"{shown[:40]}…"


def _keys(data: dict[str, Any]) -> str:
    return ", ".join(key for key in _KEYS if key in data) or "neither"
