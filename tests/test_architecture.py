"""The import rules of docs/architecture.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from readme_commands import ROOT

PACKAGE = ROOT / "spectune"
LEAVES = {
    "errors",
    "counts",
    "files",
    "printable",
    "withheld",
    "blotting",
    "typed_json",
    "jsonable",
    "sampler_names",
    "__init__",
}
# Folder → what it may import of spectune, beside itself and the leaves.
ALLOWED = {
    "space": set(),
    "machine": set(),
    "serving": {"machine"},
    "executors": {"serving"},
    "bench": set(),
    "analysis": {"bench"},
    "engines": {"space", "serving", "machine", "bench"},
    "search": {"space", "machine", "serving", "executors", "bench", "analysis", "engines"},
    "calibration": {"analysis", "search", "engines", "space"},
    "export": {"analysis", "search", "engines", "space"},
    "report": {"machine", "analysis", "search", "engines", "space", "export"},
}
# The same within search/; "watcher" and the like are modules of its own.
WITHIN_SEARCH = {
    "storage": {"guided"},
    "evidence": {"storage"},
    "guided": {"storage", "evidence"},
    "proposing": {"storage", "evidence", "guided"},
    "planning": {"storage", "evidence", "guided", "proposing"},
    "launch": {"storage", "evidence", "watcher"},
    "why": {"storage", "evidence", "guided", "answer"},
    "answer": {"storage", "evidence", "guided", "proposing", "planning", "why"},
}
# Programs that run in the engine's interpreter, not in spectune's.
FOREIGN = ("overlay", "asked", "training")
HEAVY = {"optuna", "pandas", "torch", "numpy", "scipy", "aiohttp", "jinja2", "sglang", "submitit"}


def modules(folder: str) -> list[Path]:
    files = (PACKAGE / folder).rglob("*.py")
    return [file for file in files if not any(part in FOREIGN for part in file.parts)]


def imported(file: Path, within: str = "spectune") -> set[str]:
    """Parts of a package that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix(f"{within}.").split(".")[0] for name in found if name.startswith(f"{within}.")}


@pytest.mark.parametrize("folder", ALLOWED)
def test_a_folder_imports_only_what_it_may(folder: str) -> None:
    assert modules(folder)
    for file in modules(folder):
        extra = imported(file) - ALLOWED[folder] - LEAVES - {folder, "__version__"}
        assert not extra, f"{file.relative_to(ROOT)} imports {extra}"


@pytest.mark.parametrize("folder", WITHIN_SEARCH)
def test_a_part_of_search_imports_only_what_it_may(folder: str) -> None:
    assert modules(f"search/{folder}")
    for file in modules(f"search/{folder}"):
        extra = imported(file, "spectune.search") - WITHIN_SEARCH[folder] - {folder}
        assert not extra, f"{file.relative_to(ROOT)} imports {extra}"


def test_the_picture_names_every_folder() -> None:
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    for entry in PACKAGE.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            assert f"`spectune/{entry.name}/`" in page, entry.name
    for leaf in LEAVES - {"__init__"}:
        assert re.search(rf"`(spectune/)?{leaf}\.py`", page), leaf


def test_every_module_the_page_names_is_there() -> None:
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", (ROOT / "docs/architecture.md").read_text("utf-8"))
    files = [file.as_posix() for folder in (PACKAGE, ROOT / "tests") for file in folder.rglob("*.py")]
    assert len(named) > 50
    for name in named:
        assert any(file.endswith(f"/{name}") for file in files), name


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from spectune.cli import main; sys.argv = ['spectune', '--help']\n"
        "try: main()\nexcept SystemExit: print('LOADED', *sorted(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in ran.stdout.split("LOADED")[1].split()}
    assert not loaded & HEAVY


def test_the_core_needs_neither_torch_nor_sglang() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    core = " ".join(project["dependencies"])
    assert "torch" not in core
    assert "sglang" not in core
    assert {"engine", "gp", "test"} <= project["optional-dependencies"].keys()


def test_no_module_hides_behind_a_name_that_says_nothing() -> None:
    names = {file.stem for file in PACKAGE.rglob("*.py")}
    assert not names & {"utils", "helpers", "common", "misc", "manager", "util"}
