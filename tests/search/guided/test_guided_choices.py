"""Assignments as the parts they combine: the same as a list of them, without the list."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from guided_world import TEXT, engine, space
from hypothesis import given
from hypothesis import strategies as st

from spectune.search.guided.chart import Chart
from spectune.search.guided.choices import Choices, Items, first_matching
from spectune.search.guided.encoding import Axis
from spectune.space.conditions import parse_condition

VALUES = st.sampled_from([None, 1, 2, 3])


@st.composite
def choices(draw: st.DrawFn) -> Choices:
    factors: list[list[Items]] = []
    for names in draw(st.sampled_from([("a",), ("a", "b"), ("ab", "c"), ("a", "bc", "d")])):
        drawn = draw(st.lists(st.tuples(*[VALUES] * len(names)), min_size=1, max_size=4))
        parts = [tuple((n, v) for n, v in zip(names, values, strict=True) if v is not None) for values in drawn]
        factors.append(list(dict.fromkeys(parts)))
    return Choices(tuple(factors))


@given(choices(), st.sets(st.sampled_from("abcd")))
def test_numbers_values_and_parts_are_those_of_the_list(drawn: Choices, names: set[str]) -> None:
    listed = list(drawn)
    assert len(drawn) == len(listed)
    assert [drawn[number] for number in range(len(drawn))] == listed
    assert [drawn.number(items) for items in listed] == list(range(len(drawn)))
    assert drawn.number((*listed[0], ("other", 1))) is None
    assert drawn.number((("a", 4),)) is None
    for name in "abcd":
        assert drawn.each(name, lambda value: value or 0).tolist() == [dict(items).get(name) or 0 for items in listed]
    kept = [tuple(item for item in items if item[0] in names) for items in listed]
    different, which = drawn.restricted(names)
    assert different == list(dict.fromkeys(kept))
    assert [different[index] for index in which] == kept
    concerned, times = drawn.concerning(names)
    fewer = Counter(tuple(item for item in items if item[0] in names) for items in concerned)
    assert {items: times * count for items, count in fewer.items()} == Counter(kept)


def test_of_several_conditions_the_first_that_holds_is_told() -> None:
    drafts = Choices(([(("k", 1),), (("k", 2),)],))
    sides = Choices(([()], [(("x", "unset"),), (("x", "a"),)], [(("y", 1),), (("y", 5),)]))
    forbid = [parse_condition(raw) for raw in ({"k": ">1", "y": ">3"}, {"x": "a"}, {"missing": "unset", "k": 2})]
    found = first_matching(forbid, drafts, sides)
    for row, draft in enumerate(drafts):
        for column, side in enumerate(sides):
            holds = [condition.matches(dict(draft + side)) for condition in forbid]
            assert found[row, column] == (holds.index(True) if any(holds) else len(forbid))


def test_a_chart_reads_each_value_of_a_variable_once(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = "".join(f"  env.V{n}: [unset, a, b]\n" for n in range(4))
    large = space(TEXT.replace("search:\n", f"search:\n{variables}", 1))
    read, code = Counter[str](), Axis.code
    monkeypatch.setattr(Axis, "code", lambda axis, value: (read.update([axis.name]), code(axis, value))[1])
    chart = Chart.of(large, engine(large))
    assert chart.table.size > 3**4
    assert {read[f"env.V{n}"] for n in range(4)} == {3 * len(chart.blocks)}
    numbers = np.arange(0, chart.table.size, 977)
    assert (chart.codes_at(numbers) == chart.codes([chart.table.candidate(number) for number in numbers])).all()
