"""What a launch really runs against what was asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.engines.protocol import Effective
from spectune.engines.sglang.effective import captured, differences, effective

LAUNCH = {"cuda-graph-bs-decode": (1, 2, 4, 8), "max-running-requests": 8}


def fields(found: Effective, launch: dict[str, Any] | None = None, *, speculative: bool = False) -> list[str]:
    return [m.field for m in differences({**LAUNCH, **(launch or {})}, found, speculative=speculative)]


def test_what_was_asked_for_is_no_difference() -> None:
    assert fields(Effective({"decode": (1, 2, 4, 8)}, 1000, 8)) == []


def test_nothing_is_claimed_where_nothing_is_told() -> None:
    assert fields(Effective()) == []
    assert fields(Effective({"prefill": (4,)}, None, None)) == []


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Effective({"decode": (1, 2, 4)}, 1000, 8), ["cuda-graph-bs-decode"]),
        (Effective({"decode": (1, 2, 4)}, 1000, 4), ["max-running-requests"]),
        (Effective({"verify": (1, 2, 4, 8)}, 1000, 8), []),
    ],
)
def test_fewer_graphs_or_fewer_requests(found: Effective, expected: list[str]) -> None:
    assert fields(found) == expected


def test_the_graphs_of_speculation_are_those_of_the_verify() -> None:
    assert fields(Effective({"verify": (1,), "draft": (1, 2, 4, 8)}, 9, 8), speculative=True) == [
        "cuda-graph-bs-decode"
    ]


def test_graphs_that_were_switched_off_are_not_missed() -> None:
    found = Effective({"prefill": (4,), "decode": (1,)}, 9, 8)
    assert fields(found, {"disable-decode-cuda-graph": True}) == []


def test_requests_are_counted_per_rank_of_data_parallelism() -> None:
    assert fields(Effective({}, 9, 2), {"attn-dp-size": 4}) == []
    assert fields(Effective({}, 9, 1), {"attn-dp-size": 4}) == ["max-running-requests"]


@given(st.lists(st.integers(1, 300), max_size=12), st.integers(1, 300))
def test_no_captured_size_is_above_the_requests_that_can_run(sizes: list[int], running: int) -> None:
    found = captured(sizes, running)
    assert list(found) == sorted(set(found))
    assert all(size <= running for size in found)
    assert bool(found) == bool(sizes)
    assert not sizes or max(found) == running or max(sizes) < running


def test_a_log_that_is_not_there_tells_nothing(tmp_path: Any) -> None:
    info = {"internal_states": [{"decode_cuda_graph_bs": [], "effective_max_running_requests_per_dp": 16}]}
    assert effective(tmp_path / "server.log", {}) == Effective()
    assert effective(tmp_path / "server.log", info) == Effective(max_running_requests=16)
