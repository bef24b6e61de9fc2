from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.pareto import pareto_set

points = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=25)
directions = st.tuples(st.sampled_from(["maximize", "minimize"]), st.sampled_from(["maximize", "minimize"]))


def test_the_latency_throughput_trade_off():
    speeds = [(100, 1000), (80, 2000), (90, 900), (100, 1000), (120, 500)]
    assert pareto_set(speeds, ["maximize", "maximize"]) == [0, 1, 3, 4]
    assert pareto_set([], ["maximize"]) == []


def _at_least(one, other, direction):
    return one >= other if direction == "maximize" else one <= other


@given(points=points, directions=directions)
def test_members_are_not_dominated_and_everybody_else_is(points, directions):
    def dominates(a, b):
        return a != b and all(_at_least(x, y, d) for x, y, d in zip(a, b, directions, strict=True))

    members = set(pareto_set(points, directions))
    for index, point in enumerate(points):
        assert (index in members) == (not any(dominates(other, point) for other in points))


@given(points=points)
def test_minimizing_is_maximizing_the_negative(points):
    mirrored = [(-a, b) for a, b in points]
    assert pareto_set(points, ["minimize", "maximize"]) == pareto_set(mirrored, ["maximize", "maximize"])
