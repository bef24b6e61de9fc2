"""Secrets are blotted out of everything a report shows, wherever they turn up: commands, logs, the search space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from spectune.export import PLACEHOLDER, hides_secret

BLOT = "•••"


def blotted(value: Any, secrets: Iterable[str]) -> Any:
    """Return JSON data with every secret in any of its strings replaced."""
    ordered = sorted(secrets, key=len, reverse=True)  # a secret may be part of a longer one
    return _blotted(value, ordered) if ordered else value


def _blotted(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, BLOT)
        return value
    if isinstance(value, Mapping):
        return {_blotted(name, secrets): _blotted(entry, secrets) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_blotted(entry, secrets) for entry in value]
    return value


def blotted_yaml(text: str) -> str:
    """Return the search space without the values of keys named like secrets; a text that is no YAML is not shown."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return PLACEHOLDER
    spans = sorted(_secret_spans(root), reverse=True)
    for start, end in spans:
        text = f"{text[:start]}{BLOT}{text[end:]}"
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
