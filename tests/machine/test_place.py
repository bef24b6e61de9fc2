from __future__ import annotations

import re
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.machine import Gpu, here, place_of


@pytest.mark.parametrize(
    ("host", "gpus", "place"),
    [
        ("node3", [], "node3"),
        ("node3", ["2", "3"], "node3:gpu2-3"),
        ("node3", ["3", "2"], "node3:gpu2-3"),
        ("node3", ["0"], "node3:gpu0"),
        ("node3", ["0", "2", "3", "4", "10"], "node3:gpu0,2-4,10"),
        ("a.b-c.example", ["1"], "a.b-c.example:gpu1"),
        ("no de\x1b[3/é", [], "no_de__3__"),
        ("", [], "unnamed"),
        ("node3", ["MIG-1f-2", "MIG-0a-1"], "node3:gpuMIG-0a-1,MIG-1f-2"),
    ],
)
def test_a_place_is_a_machine_and_a_part_of_it(host: str, gpus: list[str], place: str) -> None:
    assert place_of(host, gpus) == place


def test_this_place_is_named_after_its_host() -> None:
    assert here([Gpu(2), Gpu(3)]) == f"{here()}:gpu2-3"
    assert here() == place_of(socket.gethostname())


@given(st.text(), st.lists(st.integers(0, 5000).map(str) | st.text().map(lambda name: f"MIG-{name}"), max_size=40))
def test_every_place_is_short_printable_and_the_same_in_any_order(host: str, gpus: list[str]) -> None:
    place = place_of(host, gpus)
    assert re.fullmatch(r"[A-Za-z0-9._:,-]{1,107}", place)
    assert place == place_of(host, sorted(gpus, reverse=True))


@given(st.sets(st.integers(0, 15), min_size=1), st.sets(st.integers(0, 15), min_size=1))
def test_other_groups_are_other_places(one: set[int], other: set[int]) -> None:
    assert (place_of("h", list(map(str, one))) == place_of("h", list(map(str, other)))) == (one == other)
