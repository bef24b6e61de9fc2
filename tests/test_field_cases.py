"""Every report from the field that a launch could meet has a test; `field_cases.tsv` says which."""

from __future__ import annotations

import ast
import csv
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = list(csv.DictReader((HERE / "field_cases.tsv").read_text().splitlines(), delimiter="\t"))


@cache
def defined_in(file: str) -> frozenset[str]:
    tree = ast.parse((HERE / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_case_names_tests_that_exist(case: dict[str, str]) -> None:
    assert case["scope"] in {"in", "out"}
    assert case["note"], "what is done about it, or why nothing"
    named = [test.split("::") for test in case["tests"].split()]
    assert named or case["scope"] == "out"
    for file, name in named:
        assert name.startswith("test_")
        assert name in defined_in(file)


def test_no_case_is_told_twice() -> None:
    ids = [case["id"] for case in CASES]
    assert len(ids) == len(set(ids)) == 50
