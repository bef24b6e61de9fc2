"""The free-form sections of a file, `search` and `forbid`: entry by entry, so that every bad one is told."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from spectune.errors import Problem
from spectune.space.conditions import Condition, Test, parse_tests
from spectune.space.document import Document, KeyPath
from spectune.space.names import ALGORITHM, NO_SPECULATION, hint
from spectune.space.parameters import Parameter, parse_parameter, with_no_speculation
from spectune.space.values import UNSET

MOST_COMBINATIONS = 20_000_000
"""Of values. A search weighs every legal candidate: of a few million, each proposal takes seconds and gigabytes."""
_SURE_LENGTH = 6
_SURE_LIKENESS = 0.8
_NAMED = 3


def read_parameters(document: Document, data: Mapping[str, Any]) -> tuple[dict[str, Parameter], list[Problem]]:
    """Return the parameters of the `search` section that are well-formed, and what is wrong with the others.

    Args:
        document: For lines.
        data: The file's plain data.
    """
    search = data.get("search")
    parameters: dict[str, Parameter] = {}
    problems = []
    for name, raw in search.items() if isinstance(search, dict) else ():
        path: KeyPath = ("search", name)
        try:
            parameter = parse_parameter(name, raw, document.line_of(path))
        except ValueError as error:
            problems.append(document.problem(path, f"{name}: {error}"))
            continue
        parameters[name] = with_no_speculation(parameter) if name == ALGORITHM else parameter
    problems += _too_many(document, parameters.values())
    return parameters, problems


def _too_many(document: Document, parameters: Collection[Parameter]) -> Iterator[Problem]:
    """Yield that there are more combinations than a search can weigh, with what varies most."""
    combinations = math.prod(len(parameter.values) for parameter in parameters)
    if combinations > MOST_COMBINATIONS:
        longest = sorted(parameters, key=lambda parameter: -len(parameter.values))[:_NAMED]
        named = ", ".join(f"{parameter.name} has {len(parameter.values):,}" for parameter in longest)
        yield document.problem(
            ("search",),
            f"search must have at most {MOST_COMBINATIONS:,} combinations of values, but has {combinations:,} "
            f"({named}); search fewer values, and others in a study of their own",
        )


def read_conditions(
    document: Document, data: Mapping[str, Any], parameters: Mapping[str, Parameter]
) -> tuple[tuple[Condition, ...], list[Problem]]:
    """Return the conditions of the `forbid` section, and what is wrong with it.

    Args:
        document: For lines.
        data: The file's plain data.
        parameters: The well-formed parameters.
    """
    items, search = data.get("forbid"), data.get("search")
    conditions: list[Condition] = []
    problems: list[Problem] = []
    for index, item in enumerate(items if isinstance(items, list) else []):
        if not isinstance(item, dict):
            continue  # the schema has said so
        path: KeyPath = ("forbid", index)
        tests, wrong = _read_tests(document, item, path)
        problems += wrong
        problems += _unsearched(document, item, path, search)
        problems += _misspelt(document, tests, path, parameters)
        if not item:
            problems.append(document.problem(path, "an empty condition would forbid every candidate"))
        if tests:
            condition = Condition(tuple(tests.items()), document.line_of(path))
            conditions.append(condition)
            if condition.names == (ALGORITHM,) and condition.matches({ALGORITHM: NO_SPECULATION}):
                problems.append(document.problem(path, "the no-speculation branch is always included"))
    return tuple(conditions), problems


def _read_tests(
    document: Document, item: Mapping[str, object], path: KeyPath
) -> tuple[dict[str, tuple[Test, ...]], list[Problem]]:
    tests: dict[str, tuple[Test, ...]] = {}
    problems = []
    for name, raw in item.items():
        try:
            tests[name] = parse_tests(raw)
        except ValueError as error:
            problems.append(document.problem((*path, name), f"{name}: {error}"))
    return tests, problems


def _unsearched(document: Document, item: Mapping[str, object], path: KeyPath, search: object) -> Iterator[Problem]:
    if not isinstance(search, dict):
        return
    for name in item:
        if name not in search:
            message = f"'{name}' is not searched, so nothing can be forbidden by it{hint(name, search)}"
            yield document.problem((*path, name), message)


def _misspelt(
    document: Document, tests: Mapping[str, tuple[Test, ...]], path: KeyPath, parameters: Mapping[str, Parameter]
) -> Iterator[Problem]:
    """Yield operands that are no value of their parameter but all but one; others may stem from a wider space."""
    for name, alternatives in tests.items():
        words = [value for value in (parameters[name].values if name in parameters else ()) if isinstance(value, str)]
        for test in alternatives:
            if isinstance(test.operand, str) and test.operand not in (*words, UNSET):
                match = next((word for word in words if _surely_meant(test.operand, word)), None)
                if match is not None:
                    message = f"{name}: '{test.operand}' is not one of its values; did you mean '{match}'?"
                    yield document.problem((*path, name), message)


def _surely_meant(written: str, word: str) -> bool:
    """Whether `written` can only be a slip for `word`: `fa3` and `fa4` are alike too, but both exist."""
    if written.lower() == word.lower():
        return True
    likeness = difflib.SequenceMatcher(None, written.lower(), word.lower()).ratio()
    return len(written) >= _SURE_LENGTH and likeness >= _SURE_LIKENESS
