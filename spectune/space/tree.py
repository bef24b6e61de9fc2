"""From a YAML node graph to plain values, with lines, merged mappings and a bound on what aliases can blow up to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from spectune.errors import Problem
from spectune.space.dialect import scalar_value

MAX_NODES = 20_000
MAX_DEPTH = 50

_MERGE = "tag:yaml.org,2002:merge"
_CONTAINERS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")

_Entry = tuple[yaml.ScalarNode, yaml.Node]


class TreeError(Exception):
    """The document cannot be unfolded at all."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Tree:
    """Unfolds one document; its attributes are what a `Document` is made of."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.key_lines: dict[tuple[str | int, ...], int] = {}
        self.value_lines: dict[tuple[str | int, ...], int] = {}
        self.texts: dict[tuple[str | int, ...], str] = {}
        self.problems: list[Problem] = []
        self._seen = 0
        self._open: set[int] = set()

    def plain(self, node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        """Return the plain value of `node`, noting lines under `path`.

        Raises:
            TreeError: An anchor contains itself, or aliases unfold to more than `MAX_NODES` values.
        """
        self._enter(node, path)
        self.value_lines[path] = _line(node)
        if isinstance(node, yaml.ScalarNode):
            self.texts[path] = str(node.value)
            return self._scalar(node)
        if node.tag not in _CONTAINERS:
            self._note(node, f"the YAML tag {node.tag} is not supported here")
        self._open.add(id(node))
        value: Any
        if isinstance(node, yaml.SequenceNode):
            value = [self.plain(item, (*path, index)) for index, item in enumerate(node.value)]
        else:
            assert isinstance(node, yaml.MappingNode)
            value = self._mapping(node, path)
        self._open.remove(id(node))
        return value

    def _enter(self, node: yaml.Node, path: tuple[str | int, ...]) -> None:
        self._seen += 1
        if id(node) in self._open:
            raise TreeError(Problem("an anchor contains an alias of itself", self.file, _line(node)))
        if self._seen > MAX_NODES:
            raise TreeError(Problem(f"unfolds to more than {MAX_NODES} values; are aliases nested?", self.file))
        if len(path) > MAX_DEPTH:
            raise TreeError(Problem("is nested too deeply", self.file, _line(node)))

    def _scalar(self, node: yaml.ScalarNode) -> str | int | float | bool | None:
        try:
            return scalar_value(node)
        except ValueError as error:
            self._note(node, str(error))
            return str(node.value)

    def _mapping(self, node: yaml.MappingNode, path: tuple[str | int, ...]) -> dict[str, Any]:
        entries = self._entries(node)
        for key, (key_node, _) in entries.items():
            self.key_lines[(*path, key)] = _line(key_node)
        return {key: self.plain(value, (*path, key)) for key, (_, value) in entries.items()}

    def _entries(self, node: yaml.MappingNode) -> dict[str, _Entry]:
        own: dict[str, _Entry] = {}
        merged: dict[str, _Entry] = {}
        for key_node, value in node.value:
            if key_node.tag == _MERGE:
                for key, entry in self._merged(value).items():
                    merged.setdefault(key, entry)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._note(key_node, "a key must be a name, not a list or a mapping")
                continue
            key = str(key_node.value)
            if key in own:
                self._note(key_node, f"'{key}' stands twice; the first is on line {_line(own[key][0])}")
                continue
            own[key] = (key_node, value)
        return {**merged, **own}

    def _merged(self, node: yaml.Node) -> dict[str, _Entry]:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, _Entry] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                self._note(source, "<< merges mappings, but this is none")
                continue
            self._enter(source, ())
            self._open.add(id(source))
            for key, entry in self._entries(source).items():
                merged.setdefault(key, entry)
            self._open.remove(id(source))
        return merged

    def _note(self, node: yaml.Node, message: str) -> None:
        problem = Problem(message, self.file, _line(node))
        if problem not in self.problems:
            self.problems.append(problem)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
