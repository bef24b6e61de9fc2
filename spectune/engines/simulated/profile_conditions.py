"""The conditions of effects and faults: on resolved arguments, the environment, speculation and the launch number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from spectune.engines.sglang.options import Options
from spectune.errors import Problem
from spectune.space.conditions import Condition, parse_condition, parse_tests
from spectune.space.document import Document, KeyPath
from spectune.space.names import hint, is_environment
from spectune.space.values import Value

SPECULATION, LAUNCH = "speculation", "launch"


@dataclass(frozen=True)
class When:
    """A condition; one without keys always holds."""

    condition: Condition | None

    @classmethod
    def of(cls, raw: Mapping[str, object]) -> When:
        """Read a condition that has no problems; aliases of arguments become their names."""
        named = {_names().get(name, name): value for name, value in raw.items()}
        return cls(parse_condition(named) if named else None)

    def holds(self, values: Mapping[str, Value]) -> bool:
        """Whether all of its keys hold for the values of a launch."""
        return self.condition is None or self.condition.matches(values)


def condition_problems(document: Document, path: KeyPath, when: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield everything that is wrong with a condition, key by key."""
    names = {*_names(), SPECULATION, LAUNCH}
    for name, raw in when.items():
        here = (*path, name)
        if name not in names and not (is_environment(name) and len(name) > len("env.")):
            yield document.problem(here, f"unknown key '{name}' in a condition{hint(name, names)}")
            continue
        if name == SPECULATION and not isinstance(raw, bool):
            yield document.problem(here, f"{SPECULATION} must be true or false, but got {raw!r}")
            continue
        try:
            tests = parse_tests(raw)
        except ValueError as error:
            yield document.problem(here, f"{name}: {error}")
            continue
        if name == LAUNCH and not all(_counts(test.operand) for test in tests):
            yield document.problem(
                here, f"{LAUNCH} must be the number of a launch, from 0 on, or compare with one, but got {raw!r}"
            )


def _counts(operand: Value) -> bool:
    return isinstance(operand, int) and not isinstance(operand, bool) and operand >= 0


@cache
def _names() -> Mapping[str, str]:
    """Every spelling of an argument of SGLang → its name."""
    return {spelling: option.name for spelling, option in Options.shipped().by_name.items()}


def values_as_written(document: Document, path: KeyPath, when: Mapping[str, Any]) -> dict[str, Any]:
    """Return a condition in which the values of environment variables are the text of the file."""
    return {
        name: _written(document, (*path, name), value) if is_environment(name) else value
        for name, value in when.items()
    }


def _written(document: Document, path: KeyPath, value: Any) -> Any:
    if isinstance(value, list):
        return [_written(document, (*path, index), item) for index, item in enumerate(value)]
    return document.texts[path] if isinstance(value, bool | int | float) else value
