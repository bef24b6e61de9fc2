"""Reads SGLang wheels without importing them: which version accepts which option.

    python -m benchmarks.sglang_option_names WHEEL... > tests/engines/sglang/data/option_names.tsv
    python -m benchmarks.sglang_option_names --sources WHEEL...   # first line of each name, for versions.tsv

For 0.5.6, .10, .15, .17, .20, .22 and .23 the result was the same as what the version's own parser printed.
"""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

FILES = re.compile(r"sglang/srt/(server_args|arg_groups/fields/\w+)\.py")
HEADER = (
    "# Every long spelling the parsers of SGLang 0.5.6 to 0.5.23 accept, one column a version: y or -. "
    "Written by benchmarks/sglang_option_names.py."
)


def names_of(wheel: Path) -> dict[str, str]:
    """Return spelling → file:line below sglang/srt."""
    with zipfile.ZipFile(wheel) as archive:
        files = sorted(name for name in archive.namelist() if FILES.fullmatch(name))
        return {
            spelling: f"{file.removeprefix('sglang/srt/')}:{line}"
            for file in files
            for spelling, line in _spellings(ast.parse(archive.read(file)))
        }


def _spellings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            yield from _field(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            written = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            options = {keyword.arg: keyword.value for keyword in node.keywords}
            for name in written:
                if isinstance(name, str) and name.startswith("--"):
                    yield from _both(name, options, node.lineno)


def _field(node: ast.AnnAssign) -> Iterator[tuple[str, int]]:
    """Read `name: A[type, Arg(...)]`, how options are declared since 0.5.14."""
    annotation = node.annotation
    if not (isinstance(annotation, ast.Subscript) and getattr(annotation.value, "id", "") == "A"):
        return
    assert isinstance(annotation.slice, ast.Tuple)
    options = {
        keyword.arg: keyword.value
        for part in annotation.slice.elts
        if isinstance(part, ast.Call) and getattr(part.func, "id", "") == "Arg"
        for keyword in part.keywords
    }
    kind = annotation.slice.elts[0]
    if "no_cli" in options or "Callable" in ast.unparse(kind) or "Dict[str, type]" in ast.unparse(kind):
        return
    name = ast.literal_eval(options["cli_name"]) if "cli_name" in options else f"--{ast.unparse(node.target)}"
    aliases = ast.literal_eval(options["aliases"]) if "aliases" in options else []
    for spelling in (name.replace("_", "-"), *aliases):
        yield from _both(spelling, options, node.lineno)


def _both(name: str, options: dict[str | None, ast.expr], line: int) -> Iterator[tuple[str, int]]:
    yield name.lstrip("-"), line
    if "action" in options and "BooleanOptional" in ast.unparse(options["action"]):
        yield f"no-{name.lstrip('-')}", line


def main() -> None:
    """Print the table for the wheels on the command line."""
    sources = sys.argv[1:2] == ["--sources"]
    wheels = {wheel.name.split("-")[1]: wheel for wheel in map(Path, sys.argv[1 + sources :])}
    versions = sorted(wheels, key=lambda version: [int(part) for part in version.split(".")])
    found = {version: names_of(wheels[version]) for version in versions}
    print(HEADER if not sources else "# name, first version, file:line")
    if not sources:
        print("name\t" + " ".join(versions))
    for name in sorted({name for names in found.values() for name in names}):
        first = next(version for version in versions if name in found[version])
        marks = "".join("y" if name in found[version] else "-" for version in versions)
        print(f"{name}\t{first}\t{found[first][name]}" if sources else f"{name}\t{marks}")


if __name__ == "__main__":
    main()
