"""Secrets are blotted out of everything that is kept or shown, wherever they turn up: commands, logs, search spaces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import yaml

from spectune.errors import SpectuneError
from spectune.withheld import BLOT, PLACEHOLDER, hides_secret

T = TypeVar("T")


def blotted(value: T, secrets: Iterable[str]) -> T:
    """Return JSON data, or data classes, with every secret in any of their strings replaced."""
    ordered = sorted(secrets, key=len, reverse=True)  # a secret may be part of a longer one
    found: T = _blotted(value, ordered) if ordered else value
    return found


def _blotted(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, BLOT)
        return value
    if isinstance(value, Mapping):
        return {_blotted(name, secrets): _blotted(entry, secrets) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_blotted(entry, secrets) for entry in value])
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{entry.name: _blotted(getattr(value, entry.name), secrets) for entry in fields(value)})
    return value


def blot_file(path: Path, secrets: Iterable[str]) -> None:
    """Blot secrets out of a file line by line; one that holds none, or is not there, is left as it is.

    Raises:
        SpectuneError: It cannot be written.
    """
    hidden = [secret.encode() for secret in sorted(secrets, key=len, reverse=True)]
    if not hidden or not path.is_file():
        return
    partial = path.with_name(f".{path.name}.part")
    try:
        with path.open("rb") as lines:
            if not any(secret in line for line in lines for secret in hidden):
                return
        with path.open("rb") as lines, partial.open("wb") as kept:
            kept.writelines(_without(line, hidden) for line in lines)
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise SpectuneError(f"cannot blot secrets out of {path}: {error.strerror or error}; remove it") from None


def _without(line: bytes, hidden: Iterable[bytes]) -> bytes:
    for secret in hidden:
        line = line.replace(secret, BLOT.encode())
    return line


def blotted_yaml(text: str) -> str:
    """Return the search space without the values of keys named like secrets; a text that is no YAML is not shown."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return PLACEHOLDER
    spans = sorted(_secret_spans(root), reverse=True)
    for start, end in spans:
        value = text[start:end]
        line_end = value[len(value.rstrip()) :]  # that of a block belongs to what follows
        text = f"{text[:start]}{BLOT}{line_end}{text[end:]}"
    return text


def _secret_spans(node: yaml.Node | None) -> Iterator[tuple[int, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = str(getattr(key, "value", "")).removeprefix("env.")
            scalars = list(_scalars(value))
            if hides_secret(name, [str(scalar.value) for scalar in scalars]):
                yield from ((scalar.start_mark.index, scalar.end_mark.index) for scalar in scalars)
            else:
                yield from _secret_spans(value)
    elif isinstance(node, yaml.SequenceNode):
        for entry in node.value:
            yield from _secret_spans(entry)


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.SequenceNode):
        for entry in node.value:
            yield from _scalars(entry)
