"""Conditions on a candidate: `{speculative-eagle-topk: ">1", env.NCCL_PROTO: [LL, unset]}`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from spectune.space.values import UNSET, Scalar, Value, canonical, canonical_json, text_of

Operator = Literal["=", "!=", "<", "<=", ">", ">="]

_ORDER: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WRITTEN = re.compile(r"\s*(<=|>=|!=|<|>)\s*(.*?)\s*", re.DOTALL)
_OPERATOR_LIKE = re.compile(r"\s*[<>=!~]")
_INTEGER = re.compile(r"[-+]?\d+", re.ASCII)
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Test:
    """One comparison with one value."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    operator: Operator
    operand: Value

    def holds(self, value: Value | None) -> bool:
        """Whether `value` passes; None and `unset` both mean absent, which only equals `unset`."""
        absent = value is None or value == UNSET
        if self.operator == "=" and self.operand == UNSET:
            return absent
        if value is None or absent:
            return False
        if self.operator == "=":
            return _same(value, self.operand)
        if self.operator == "!=":
            return not _same(value, self.operand)
        left, right = _number(value), _number(self.operand)
        return left is not None and right is not None and _ORDER[self.operator](left, right)

    def __str__(self) -> str:
        """As written in a file."""
        return text_of(self.operand) if self.operator == "=" else f"{self.operator}{text_of(self.operand)}"


@dataclass(frozen=True)
class Condition:
    """Holds when every name passes any one of its tests.

    Attributes:
        tests: Name → its alternatives, in the order written.
        line: Where it stands, if it came from a file.
    """

    tests: tuple[tuple[str, tuple[Test, ...]], ...]
    line: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        assert self.tests, "a condition without a test would hold for everything"

    def matches(self, values: Mapping[str, Value]) -> bool:
        """Whether it holds for `values`; a name that is absent there matches only `unset`."""
        return all(any(test.holds(values.get(name)) for test in tests) for name, tests in self.tests)

    @property
    def names(self) -> tuple[str, ...]:
        """The names it looks at."""
        return tuple(name for name, _ in self.tests)

    def to_plain(self) -> dict[str, object]:
        """Return what would stand in a YAML file."""
        return {name: _plain(tests) for name, tests in self.tests}

    def __str__(self) -> str:
        """As a flow mapping of YAML, without quotes."""
        parts = (f"{name}: {' or '.join(str(test) for test in tests)}" for name, tests in self.tests)
        return "{" + ", ".join(parts) + "}"


def parse_condition(raw: Mapping[str, object], line: int | None = None) -> Condition:
    """Read a condition.

    Args:
        raw: Name → value, operator with number (`">5"`, `"!=x"`), or a list of these of which any may hold.
        line: Where it stands.

    Raises:
        ValueError: It is empty, or an entry does not parse.
    """
    if not raw:
        raise ValueError("an empty condition would hold for every candidate")
    return Condition(tuple((name, parse_tests(value)) for name, value in raw.items()), line)


def parse_tests(raw: object) -> tuple[Test, ...]:
    """Read the right-hand side of one entry of a condition: the alternatives of which any may hold.

    Raises:
        ValueError: Unknown operator, an order without a number, null, or an empty list.
    """
    if not isinstance(raw, list | tuple):
        return (_parse_test(raw),)
    if not raw:
        raise ValueError("an empty list never matches; give at least one value")
    return tuple(_parse_test(item) for item in raw)


def _parse_test(raw: object) -> Test:
    if not isinstance(raw, str) or not _OPERATOR_LIKE.match(raw):
        return Test("=", canonical(raw))
    written = _WRITTEN.fullmatch(raw)
    if written is None or _OPERATOR_LIKE.match(written[2]):
        raise ValueError(
            f"'{raw}' has no operator known here; use one of < <= > >= !=, or the plain value for equality"
        )
    sign, text = written.groups()
    if not text:
        raise ValueError(f"'{raw}' has nothing behind its operator")
    operand = _scalar(text)
    if sign in _ORDER and (isinstance(operand, bool) or not isinstance(operand, int | float)):
        raise ValueError(f"'{raw}' orders by '{text}', which is not a number")
    return Test(sign, operand)  # type: ignore[arg-type]  # the pattern allows exactly the operators


def _scalar(text: str) -> Scalar:
    if text in {"true", "false"}:
        return text == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return text


def _number(value: Value) -> float | None:
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    return None if isinstance(value, bool | tuple) else value


def _same(value: Value, operand: Value) -> bool:
    """Equality in which an environment value, always text, equals the number or truth value it spells."""
    if isinstance(value, str) != isinstance(operand, str):
        left, right = _number(value), _number(operand)
        return left == right if left is not None and right is not None else text_of(value) == text_of(operand)
    return canonical_json(canonical(value)) == canonical_json(canonical(operand))


def _plain(tests: tuple[Test, ...]) -> object:
    items: list[object] = [
        (list(test.operand) if isinstance(test.operand, tuple) else test.operand) if test.operator == "=" else str(test)
        for test in tests
    ]
    return items[0] if len(items) == 1 and not isinstance(items[0], list) else items
