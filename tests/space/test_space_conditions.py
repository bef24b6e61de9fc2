from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.space import Condition, parse_condition

numbers = st.integers(-1000, 1000)


@pytest.mark.parametrize(
    ("raw", "value", "expected"),
    [
        (">5", 6, True),
        (">5", 5, False),
        (" <= 3 ", 3, True),
        (">=0.5", 0.5, True),
        ("<2", "1", True),  # environment values are text
        ("<2", "many", False),
        (">0", True, False),  # a truth value is no number
        (">0", (1, 2), False),
        ("!=x", "y", True),
        ("!=x", "x", False),
        ("!=4", "4", False),
        ("!=true", True, False),
        ("!=unset", "LL", True),
        ("!=unset", "unset", False),
        ("!=unset", None, False),
        ("!=x", None, False),  # an absent key matches only unset
        ("unset", None, True),
        ("unset", "unset", True),
        ("unset", "LL", False),
        (["LL", "unset"], None, True),
        (["LL", "unset"], "LL", True),
        (["LL", "unset"], "Simple", False),
        ([1, ">5"], 7, True),
        ([1, ">5"], 3, False),
        ([[1, 2], [4]], (1, 2), True),
        ([[1, 2], [4]], (1, 3), False),
        (0, "0", True),
        (1.0, "1", True),
        (1, True, False),
        (True, True, True),
        (True, "true", True),
        ("triton", "triton", True),
        ("triton", None, False),
    ],
)
def test_one_name(raw: object, value: object, expected: bool) -> None:
    values = {} if value is None else {"name": value}
    assert parse_condition({"name": raw}).matches(values) is expected


def test_all_names_must_hold() -> None:
    condition = parse_condition({"speculative-eagle-topk": ">1", "speculative-num-steps": ">5"})
    assert condition.matches({"speculative-eagle-topk": 2, "speculative-num-steps": 6})
    assert not condition.matches({"speculative-eagle-topk": 1, "speculative-num-steps": 6})
    assert not condition.matches({})
    assert str(condition) == "{speculative-eagle-topk: >1, speculative-num-steps: >5}"
    assert condition.names == ("speculative-eagle-topk", "speculative-num-steps")


@given(numbers, numbers)
def test_operators_agree_with_arithmetic(left: int, right: int) -> None:
    def holds(sign: str) -> bool:
        return parse_condition({"n": f"{sign}{right}"}).matches({"n": left})

    assert holds("<") == (left < right)
    assert holds("<=") == (left <= right)
    assert holds(">") == (left > right)
    assert holds(">=") == (left >= right)
    assert holds("!=") == (left != right)


@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.one_of(
            numbers,
            st.booleans(),
            st.sampled_from(["x", "unset", ">5", "!=x"]),
            st.lists(st.one_of(numbers, st.lists(numbers, min_size=1, max_size=3)), min_size=1, max_size=3),
        ),
        min_size=1,
    )
)
def test_a_condition_survives_being_written(raw: dict[str, object]) -> None:
    condition = parse_condition(raw)
    assert parse_condition(condition.to_plain()) == condition


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "empty condition"),
        ({"a": "=5"}, "no operator known here"),
        ({"a": "==5"}, "no operator known here"),
        ({"a": "=>5"}, "no operator known here"),
        ({"a": "<>5"}, "no operator known here"),
        ({"a": "~5"}, "no operator known here"),
        ({"a": ">"}, "nothing behind"),
        ({"a": ">many"}, "not a number"),
        ({"a": ">５"}, "not a number"),
        ({"a": "<true"}, "not a number"),
        ({"a": None}, "null"),
        ({"a": []}, "never matches"),
        ({"a": {"b": 1}}, "mapping"),
    ],
)
def test_what_is_no_condition_is_refused(raw: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_condition(raw)


def test_conditions_are_equal_wherever_they_stand() -> None:
    assert parse_condition({"a": 1}, line=3) == parse_condition({"a": 1}, line=9)
    assert isinstance(parse_condition({"a": 1}), Condition)
