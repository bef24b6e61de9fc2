"""A command written as a list of words: in JSON, in the YAML of a container, or in a Dockerfile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

_KEYS = ("entrypoint", "command", "args")  # Compose has the first two, Kubernetes the last two, in this order
_LIST = re.compile(rf"^[ \t]*(-[ \t]+)?(\[|-[ \t]|\"?({'|'.join(_KEYS)})\"?[ \t]*:)", re.MULTILINE)
_DOCKERFILE = re.compile(r"^[ \t]*(ENTRYPOINT|CMD)[ \t]+(\[.*\])\s*$", re.MULTILINE)
_LONGEST = 2**16  # characters; YAML takes seconds for more, and no list of words has them


def words_in_list(text: str) -> list[str] | None:
    """Return the words of a list that starts SGLang or holds its options; None when the text is no such list."""
    lines = [line[2] for line in _DOCKERFILE.finditer(text)]
    if len(text) > _LONGEST or not (lines or _LIST.search(text)):
        return None
    try:  # the base loader: every value stays the text it is, and nothing is made of it
        documents = [one for part in lines or [text] for one in yaml.load_all(part, yaml.BaseLoader)]
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if lines:
        return [word for words in documents for word in words if isinstance(word, str)]
    found = (words for document in documents for words in _lists(document, set()))
    return next((words for words in found if _starts_sglang(words)), None)


def _lists(value: Any, seen: set[int]) -> Iterator[list[str]]:
    """Yield the words of every command in a document, outer ones first; what stands there twice is read once."""
    if isinstance(value, str) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        parts = [value[key] for key in _KEYS if isinstance(value.get(key), list)]
        yield [word for part in parts for word in part if isinstance(word, str)]
    elif isinstance(value, list):
        yield [word for word in value if isinstance(word, str)]
    for inner in value.values() if isinstance(value, Mapping) else value:
        yield from _lists(inner, seen)


def _starts_sglang(words: list[str]) -> bool:
    return any("sglang" in word for word in words) or any(word.startswith("--model") for word in words[:1])
