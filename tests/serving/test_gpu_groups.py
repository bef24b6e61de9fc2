from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from spectune.machine import Gpu
from spectune.serving.gpu_groups import choose


def machine(count: int, per_node: int = 100, per_clique: int = 0) -> list[Gpu]:
    """GPUs on nodes of `per_node`, each joined to the others of its clique."""

    def joined(index: int) -> tuple[int, ...]:
        return tuple(o for o in range(count) if per_clique and o != index and o // per_clique == index // per_clique)

    return [Gpu(i, uuid=f"GPU-{i}", numa_node=i // per_node, nvlink=joined(i)) for i in range(count)]


def numbers(gpus: list[Gpu], free: set[int], count: int) -> list[int] | None:
    group = choose(gpus, {f"GPU-{index}" for index in free}, count)
    return None if group is None else [gpu.index for gpu in group]


ALL = set(range(8))


def test_launches_of_one_size_share_the_machine_out_in_blocks() -> None:
    gpus = machine(8, per_node=4)
    assert numbers(gpus, ALL, 2) == [0, 1]
    assert numbers(gpus, ALL - {0, 1}, 2) == [2, 3]
    assert numbers(gpus, ALL - {1}, 2) == [2, 3], "a block that is whole before one that is not"
    assert numbers(gpus, ALL - {0, 1, 2}, 4) == [4, 5, 6, 7]
    assert numbers(gpus, ALL, 8) == list(range(8))
    assert numbers(gpus, ALL, 1) == [0]


def test_one_node_comes_before_a_block_and_nvlink_before_both() -> None:
    assert numbers(machine(8, per_node=4), {2, 3, 4, 6, 7}, 3) == [4, 6, 7]
    assert numbers(machine(8, per_node=3), ALL, 3) == [0, 1, 2]
    assert numbers(machine(6, per_node=3), {2, 3, 4, 5}, 2) == [4, 5]
    pairs = machine(8, per_node=4, per_clique=2)
    assert numbers(pairs, ALL - {0}, 2) == [2, 3]
    assert numbers(machine(9, per_node=9, per_clique=3), {1, 2, 3, 4}, 2) == [1, 2], "joined, though no block"


def test_too_few_are_none() -> None:
    assert numbers(machine(8), {1}, 2) is None
    assert numbers(machine(2), {0, 1}, 3) is None
    assert numbers([], set(), 1) is None


def test_the_order_is_the_users() -> None:
    gpus = machine(4)
    assert numbers([gpus[3], gpus[1], gpus[0]], {0, 1, 3}, 2) == [3, 1]


@given(
    count=st.integers(1, 10), per_node=st.integers(1, 8), per_clique=st.integers(0, 8), data=st.data(),
    size=st.integers(1, 8),
)  # fmt: skip
def test_any_group_is_free_complete_and_as_close_as_can_be(
    count: int, per_node: int, per_clique: int, size: int, data: st.DataObject
) -> None:
    gpus = data.draw(st.permutations(machine(count, per_node, per_clique)))
    free = data.draw(st.sets(st.integers(0, count - 1)))
    group = numbers(gpus, free, size)
    assert (group is None) == (len(free) < size)
    if group is None:
        return
    assert len(set(group)) == size
    assert set(group) <= free
    assert group == [gpu.index for gpu in gpus if gpu.index in set(group)]
    assert group == numbers(gpus, free, size), "the same question has the same answer"
    if per_clique and any(len([g for g in free if g // per_clique == c]) >= size for c in range(count)):
        assert len({index // per_clique for index in group}) == 1
    elif not per_clique and any(len([g for g in free if g // per_node == node]) >= size for node in range(count)):
        assert len({index // per_node for index in group}) == 1


@given(size=st.sampled_from([1, 2, 4]), data=st.data())
def test_launches_of_one_size_never_block_each_other(size: int, data: st.DataObject) -> None:
    """However they come and go, eight GPUs take eight, four or two of them."""
    gpus, running = machine(8, per_node=4), list[list[int]]()
    for _ in range(20):
        taken = {index for group in running for index in group}
        if running and (len(taken) == 8 or data.draw(st.booleans())):
            running.remove(data.draw(st.sampled_from(running)))
            continue
        group = numbers(gpus, ALL - taken, size)
        assert group is not None
        assert group[0] % size == 0, "each is a block"
        running.append(group)
        assert not any(set(one) & set(other) for one, other in combinations(running, 2))
