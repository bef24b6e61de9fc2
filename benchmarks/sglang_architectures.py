"""Reads SGLang wheels without importing them: what each architecture can do under speculation.

    python -m benchmarks.sglang_architectures WHEEL... > spectune/engines/sglang/preflight/architectures.tsv

A class has a method when it or a base among SGLang's own models defines it; what a draft checkpoint is loaded as stands
in configs/model_config.py.
"""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MODELS = re.compile(r"sglang/srt/models/(\w+)\.py")
CAPTURES, SHARES = "set_eagle3_layers_to_capture", ("get_embed_and_head", "get_embed_and_head_for_draft")
HEADER = """\
# What SGLang's model classes can do under speculation, by version, written by benchmarks/sglang_architectures.py.
# first, last: versions that have the architecture, 0.5.6 being the oldest looked at; a blank last: still there.
# drafter: kind of draft head. bundled: what a checkpoint of it becomes as a drafter (its own MTP layers).
# captures, shares: first version that hands out auxiliary hidden states (EAGLE3), and embedding and head (EAGLE*)."""
COLUMNS = "architecture first last drafter bundled captures shares"


@dataclass(frozen=True)
class Class:
    """A class of a models file: what it defines, and (file, name) of its bases."""

    defines: frozenset[str]
    bases: tuple[tuple[str, str], ...]


def main() -> None:
    wheels = {wheel.name.split("-")[1]: wheel for wheel in map(Path, sys.argv[1:])}
    versions = sorted(wheels, key=lambda version: [int(part) for part in version.split(".")])
    seen: dict[str, dict[str, tuple[str, bool, bool, str]]] = {}
    for version in versions:
        for name, facts in architectures(wheels[version]).items():
            seen.setdefault(name, {})[version] = facts
    print(HEADER)
    print(*COLUMNS.split(), sep="\t")
    for name, by_version in sorted(seen.items()):
        there = list(by_version)
        kind, _, _, bundled = by_version[there[-1]]
        captures = next((version for version in there if by_version[version][1]), "")
        shares = next((version for version in there if by_version[version][2]), "")
        last = "" if there[-1] == versions[-1] else there[-1]
        print(name, there[0], last, kind, bundled, captures, shares, sep="\t")


def architectures(wheel: Path) -> dict[str, tuple[str, bool, bool, str]]:
    """Return name → kind of drafter, whether it captures, whether it shares, what it is as its own drafter."""
    classes: dict[tuple[str, str], Class] = {}
    entries: list[tuple[str, str]] = []
    with zipfile.ZipFile(wheel) as archive:
        for path in archive.namelist():
            if found := MODELS.fullmatch(path):
                tree = ast.parse(archive.read(path))
                classes |= {(found[1], name): read for name, read in _classes(tree, found[1])}
                entries += [(found[1], name) for name in _entries(tree)]
        bundled = dict(_bundled(ast.parse(archive.read("sglang/srt/configs/model_config.py"))))
    return {
        name: (
            _kind(file, name),
            _has(classes, (file, name), {CAPTURES}),
            _has(classes, (file, name), set(SHARES)),
            bundled.get(name, ""),
        )
        for file, name in entries
    }


def _classes(tree: ast.Module, file: str) -> Iterator[tuple[str, Class]]:
    origin = {
        alias.asname or alias.name: (node.module.removeprefix("sglang.srt.models."), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sglang.srt.models.")
        for alias in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            defined = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            defined |= {ast.unparse(target) for part in node.body if isinstance(part, ast.Assign)
                        for target in part.targets}  # fmt: skip
            bases = tuple(origin.get(ast.unparse(base), (file, ast.unparse(base))) for base in node.bases)
            yield node.name, Class(frozenset(defined), bases)


def _entries(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EntryClass":
            return [part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)]
    return []


def _has(classes: Mapping[tuple[str, str], Class], key: tuple[str, str], methods: set[str]) -> bool:
    one = classes.get(key)
    if one is None:
        return False
    return not methods.isdisjoint(one.defines) or any(_has(classes, base, methods) for base in one.bases if base != key)


def _kind(file: str, name: str) -> str:
    if re.search(r"MTP$|NextN$", name) or ("Assistant" in name and file.endswith("_mtp")):
        return "mtp"
    if re.search(r"eagle", file):
        return "eagle3" if "Eagle3" in name else "eagle"
    return "block" if re.search(r"dflash|dspark|lilicorr", file) else ""


def _bundled(tree: ast.Module) -> Iterator[tuple[str, str]]:
    constants = {
        ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)
    }  # fmt: skip
    for node in ast.walk(tree):
        if not (isinstance(node, ast.If) and "is_draft_model" in ast.unparse(node.test)):
            continue
        asked = [part for part in ast.walk(node.test) if isinstance(part, ast.Compare) and "architectures" in
                 ast.unparse(part.left)]  # fmt: skip
        named = [constants.get(ast.unparse(side), side) for part in asked for side in part.comparators]
        becomes = [part.value for inner in node.body for part in ast.walk(inner) if isinstance(part, ast.Assign)
                   and ".architectures" in ast.unparse(part.targets[0])]  # fmt: skip
        texts = [text for value in becomes if (text := _texts(value))]
        for name in (text for side in named for text in _texts(side)):
            if texts and "DSpark" not in name:
                yield name, texts[-1][0]


def _texts(node: ast.expr) -> list[str]:
    return [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]


if __name__ == "__main__":
    main()
