"""One entry of a prompt file, in any of the layouts people have: the prompts it holds, and when it was asked."""

# ruff: noqa: TRY004 (an entry of a file is a wrong value whatever its type)

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import orjson

from spectune.bench.prompts import Message, Prompt

Turns = Literal["last", "all"]
"""Of a conversation: its last question as one request, or each of its questions as a request of its own."""

MOST_OUTPUT_TOKENS = 1_000_000  # as for a whole workload
MOST_CLASS_NAME = 100
_EPOCH_MS = 1e11  # as seconds, the year 5138
_LATEST = 1000 * _EPOCH_MS
_ROLES = {
    "human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant",
    "bard": "assistant", "assistant": "assistant", "model": "assistant", "system": "system", "tool": "tool",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """What an entry says.

    Attributes:
        prompts: One, or one for every question; none where a conversation asks nothing.
        time_s: Its timestamp.
    """

    prompts: tuple[Prompt, ...]
    time_s: float | None


def read_entry(data: Any, prompt_id: str, default_class: str, turns: Turns) -> Entry:
    """Read `{prompt}`, `{messages}`, `{body: {…}}` (OpenAI batch) or `{conversations: [{from, value}]}` (ShareGPT).

    A question is sent with what was said before it, as recorded: the model's own earlier answers would be others, and
    differ between candidates.

    Raises:
        ValueError: Why it is none of these.
    """
    if not isinstance(data, dict):
        raise ValueError(f"a prompt must be an object with `prompt` or `messages`, but got {_kind(data)}")
    asked = {**data, **data["body"]} if isinstance(data.get("body"), dict) else data
    given = [key for key in ("prompt", "messages", "conversations") if key in asked]
    if len(given) != 1:
        raise ValueError(f"needs exactly one of `prompt`, `messages` and `conversations`, but has {_keys(asked)}")
    prompt_class = _class(asked["class"]) if "class" in asked else default_class
    output_tokens = _output_tokens(asked)
    time_s = _time_s(asked)
    if given == ["prompt"]:
        prompt = Prompt(prompt_id, prompt_class, text=_text(asked["prompt"], "prompt"), output_tokens=output_tokens)
        return Entry((prompt,), time_s)
    said = _messages(asked["messages"]) if given == ["messages"] else _recorded(asked["conversations"])
    ends = _questions(said)
    names = [prompt_id] if turns == "last" else [f"{prompt_id}/{turn}" for turn in range(1, len(ends) + 1)]
    prompts = [
        Prompt(name, prompt_class, messages=said[:end], output_tokens=output_tokens)
        for name, end in zip(names, ends[-1:] if turns == "last" else ends, strict=False)
    ]
    return Entry(tuple(prompts), time_s)


def _questions(said: tuple[Message, ...]) -> list[int]:
    """How many messages there are up to each point where the assistant is to answer."""
    followers = (*said[1:], Message("assistant", ""))
    return [
        index
        for index, (message, follower) in enumerate(zip(said, followers, strict=False), start=1)
        if message.role not in {"assistant", "system"} and follower.role == "assistant"
    ]


def _messages(value: Any) -> tuple[Message, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"`messages` must be a list of {{role, content}}, but got {_kind(value)}")
    messages: list[Message] = []
    for entry in value:
        if not isinstance(entry, dict):
            raise ValueError(f"a message must be an object with `role` and `content`, but got {_kind(entry)}")
        messages.append(Message(_text(entry.get("role"), "role"), _content(entry.get("content"))))
    if not _questions(tuple(messages)):
        raise ValueError("`messages` ask nothing: there is no message of a user in them")
    return tuple(messages)


def _content(value: Any) -> str:
    """A text, or the texts of a list of parts."""
    if not isinstance(value, list):
        return _text(value, "content")
    other = [part for part in value if not (isinstance(part, dict) and part.get("type") == "text")]
    if other:
        raise ValueError(f"only text can be sent, but a part of `content` is {_kind(other[0])}")
    return _text("\n".join(_text(part.get("text"), "text") for part in value), "content")


def _recorded(value: Any) -> tuple[Message, ...]:
    """A ShareGPT conversation from its first question on, as far as it has no holes; nothing where it asks nothing."""
    if not isinstance(value, list):
        raise ValueError(f"`conversations` must be a list of {{from, value}}, but got {_kind(value)}")
    messages: list[Message] = []
    for turn in value:
        speaker = turn.get("from") if isinstance(turn, dict) else None
        role = _ROLES.get(speaker) if isinstance(speaker, str) else None
        if role is None:
            raise ValueError(f"a turn must be {{from: human | gpt | system, value}}, but got {_kind(turn)}")
        if not isinstance(turn.get("value"), str) or not turn["value"].strip():
            break
        if role != "assistant" or any(message.role == "user" for message in messages):
            messages.append(Message(role, _text(turn["value"], "value")))
    return tuple(messages)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"`{name}` must be a text that is not empty, but got {_kind(value)}")
    if "\0" in value:
        raise ValueError(f"`{name}` holds a NUL character, which is no text")
    return value


def _class(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > MOST_CLASS_NAME:
        raise ValueError(
            f"`class` must be a line of at most {MOST_CLASS_NAME} printable characters, but got {_kind(value)}"
        )
    return value


def _output_tokens(data: Mapping[str, Any]) -> int | None:
    names = ("output_tokens", "max_completion_tokens", "max_tokens")
    name = next((name for name in names if data.get(name) is not None), None)
    if name is None:
        return None
    value = data[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_OUTPUT_TOKENS:
        raise ValueError(f"`{name}` must be a whole number from 1 to {MOST_OUTPUT_TOKENS:,}, but got {_kind(value)}")
    return value


def _time_s(data: Mapping[str, Any]) -> float | None:
    name = next((name for name in ("timestamp", "timestamp_ms") if data.get(name) is not None), None)
    if name is None:
        return None
    value = data[name]
    if isinstance(value, str) and name == "timestamp":
        try:
            return datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST:
        raise ValueError(f"`{name}` must be a number from 0 to 1e14 or an ISO 8601 time, but got {_kind(data[name])}")
    return value / 1000.0 if name == "timestamp_ms" or value >= _EPOCH_MS else float(value)


def _kind(value: Any) -> str:
    try:
        shown = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return "something nested too deeply"
    return shown if len(shown) <= 40 else f"{shown[:40]}…"


def _keys(data: Mapping[str, Any]) -> str:
    return ", ".join(list(data)[:6]) or "no keys"
