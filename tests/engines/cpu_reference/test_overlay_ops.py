"""Every op of the overlay against an independent computation, in the engine's interpreter (`op_checks.py`)."""

from __future__ import annotations

import ast
import json
import os
import subprocess
from pathlib import Path

import pytest

from spectune.engines.cpu_reference import Runtime

SCRIPT = Path(__file__).with_name("op_checks.py")
OVERLAY = Path(__file__).parents[3] / "spectune/engines/cpu_reference/overlay"


def check_names() -> list[str]:
    """Names in the script's list of checks, read without importing torch."""
    for node in ast.parse(SCRIPT.read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "CHECKS":
            assert isinstance(node.value, ast.List)
            return [name.id for name in node.value.elts if isinstance(name, ast.Name)]
    raise AssertionError("the script has no list of checks")


@pytest.fixture(scope="module")
def results(cpu_runtime: Runtime) -> dict[str, str | None]:
    """Each check's failure as text, or None; all run in one process because importing torch takes longest."""
    environment = os.environ | cpu_runtime.env | {"PYTHONPATH": str(OVERLAY)}
    run = subprocess.run(
        [cpu_runtime.python, SCRIPT], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.engine
@pytest.mark.parametrize("name", check_names())
def test_op_agrees_with_a_naive_computation(name: str, results: dict[str, str | None]) -> None:
    assert name in results
    assert results[name] is None, results[name]


def test_every_exported_op_has_a_check() -> None:
    tree = ast.parse((OVERLAY / "sgl_kernel/__init__.py").read_text())
    exported = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"
    )
    checked = SCRIPT.read_text()
    assert [op for op in exported if f".{op}(" not in checked] == []
