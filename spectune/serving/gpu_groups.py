"""Which GPUs one launch takes of those that are free. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from spectune.machine import Gpu

Group = tuple[Gpu, ...]


def choose(gpus: Sequence[Gpu], free: Collection[str], count: int) -> Group | None:
    """Return the `count` free GPUs that are closest to each other, in the order they were given; None if too few are.

    Close is, in this order: joined by NVLink, on one NUMA node, a whole block of the machine as everybody divides it
    (0 and 1, 2 and 3, …), early. So launches of one size fit beside each other without a word between them.

    Args:
        gpus: All that a launch may use.
        free: Keys of those that nobody uses.
        count: How many it takes, at least 1.
    """
    blocks = [tuple(gpus[first : first + count]) for first in range(0, len(gpus) - count + 1, count)]
    whole = [block for block in blocks if all(gpu.key in free for gpu in block)]
    candidates = [*whole, *_around([gpu for gpu in gpus if gpu.key in free], count)]
    return min(candidates, key=lambda group: (_apart(group), _nodes(group), group not in whole), default=None)


def _around(free: Sequence[Gpu], count: int) -> Iterator[Group]:
    """Yield for each free GPU the group of it and the nearest others."""
    for center in free if len(free) >= count else ():
        near = sorted(free, key=lambda gpu: (gpu is not center, not _linked(center, gpu), _distance(center, gpu)))
        chosen = near[:count]
        yield tuple(gpu for gpu in free if gpu in chosen)


def _linked(one: Gpu, other: Gpu) -> bool:
    return other.index in (one.nvlink or ())


def _distance(one: Gpu, other: Gpu) -> bool:
    return one.numa_node != other.numa_node


def _apart(group: Group) -> int:
    """Return how many pairs have no NVLink between them."""
    return sum(not _linked(one, other) for one, other in combinations(group, 2))


def _nodes(group: Group) -> int:
    return len({gpu.numa_node for gpu in group})
