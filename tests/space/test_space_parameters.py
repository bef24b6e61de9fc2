from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.space import IntegerRange, Parameter
from spectune.space.parameters import parse_parameter


@given(st.integers(-50, 50), st.integers(0, 50), st.integers(1, 7))
def test_a_range_holds_what_python_counts(low: int, width: int, step: int) -> None:
    parameter = parse_parameter("n", {"from": low, "to": low + width, "step": step})
    expected = list(range(low, low + width + 1, step))
    assert list(parameter.values) == expected
    assert all(parameter.allows(value) for value in expected)
    assert not parameter.allows(low + width + 1)
    assert parse_parameter("n", parameter.to_plain()) == parameter


def test_a_range_is_read_lazily_and_ends_on_a_value() -> None:
    parameter = parse_parameter("n", {"from": 1, "to": 8, "step": 2})
    assert parameter.domain == IntegerRange(1, 7, 2)
    assert not parameter.is_fixed
    assert parse_parameter("n", {"from": 3, "to": 3}).is_fixed


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        (5, (5,)),
        ("triton", ("triton",)),
        ([True, False], (True, False)),
        ([[1, 2], [1, 2, 4]], ((1, 2), (1, 2, 4))),
        ([1, True], (1, True)),
        ([0.5, 1.0], (0.5, 1)),
    ],
)
def test_categories(raw: object, values: tuple[object, ...]) -> None:
    parameter = parse_parameter("name", raw)
    assert parameter == Parameter("name", values)
    assert repr(parameter.values) == repr(values)
    assert parse_parameter("name", parameter.to_plain()) == parameter


def test_environment_values_are_text() -> None:
    assert parse_parameter("env.N", ["unset", "0", "0x10"]).values == ("unset", "0", "0x10")
    assert parse_parameter("env.N", {"from": 1, "to": 3}).values == ("1", "2", "3")


def test_true_is_not_one() -> None:
    assert not parse_parameter("n", {"from": 0, "to": 3}).allows(True)
    assert not parse_parameter("n", [1, 2]).allows(True)


def test_the_algorithm_is_spelt_one_way() -> None:
    assert parse_parameter("speculative-algorithm", ["None", "EAGLE3"]).values == ("none", "EAGLE3")


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("n", [], "empty list leaves nothing"),
        ("n", [[]], "empty list is not a value"),
        ("n", [[1, [2]]], "list inside a list"),
        ("n", [{"a": 1}], "mapping"),
        ("n", None, "null"),
        ("n", [1, None], "null"),
        ("n", [1, 2, 1], "1 stands twice"),
        ("n", [1, 1.0], "1 stands twice"),
        ("n", [[1, 2], [1, 2]], r"\[1, 2\] stands twice"),
        ("n", {"from": 7, "to": 1}, "range is empty: from 7 is more than to 1"),
        ("n", {"from": 1}, "'to' is missing"),
        ("n", {"from": 1, "to": 2, "stop": 3}, "did you mean 'step'"),
        ("n", {"from": 1, "to": 2.5}, "whole number"),
        ("n", {"from": 1, "to": True}, "whole number"),
        ("n", {"from": 1, "to": 5, "step": 0}, "at least 1"),
        ("n", {"from": 1, "to": 10**9}, "give a step"),
        ("n", {}, "'from' is missing"),
        ("n", ["unset", 1], "env.NAME parameters only"),
        ("env.A", ["1", "a\nb"], r"the value of A must be one line without control characters, but got 'a\\nb'"),
        ("env.A", "a\0b", "the character NUL"),
        ("n", ["a", "a\0b"], "the character NUL"),
        ("env.A", "\x9b31m", "control characters"),
        ("env.A", "x" * 131_070, "the value of A is too long"),
        ("speculative-algorithm", {"from": 1, "to": 2}, "names, not a range"),
        ("speculative-algorithm", ["EAGLE3", False], "written none"),
        ("speculative-algorithm", ["none", "NONE"], "twice"),
    ],
)
def test_what_leaves_nothing_sensible_to_choose_is_refused(name: str, raw: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_parameter(name, raw)
