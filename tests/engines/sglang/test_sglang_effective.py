"""What a launch really runs against what was asked for."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sglang_log_lines as sg
from hypothesis import given
from hypothesis import strategies as st

from spectune.engines.protocol import Effective, Mismatch
from spectune.engines.served import Served
from spectune.engines.sglang.effective import captured, differences, effective, nccl_differences, served

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


def nccl_lines(tmp_path: Path, *said: str) -> Effective:
    log = tmp_path / "server.log"
    lines = "".join(f"node7:61{rank}:61{rank} [{rank}] NCCL INFO {one}\n" for rank in (0, 1) for one in said)
    log.write_text(sg.server(sg.prefill(), captured=[1]) + lines)
    return effective(log, {})


def test_what_nccl_logs_of_its_variables_is_read_back(tmp_path: Path) -> None:
    """With NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=ENV; an nccl.conf sets variables that no environment shows."""
    found = nccl_lines(
        tmp_path, "NCCL_ALGO set by environment to Ring", "NCCL_CUMEM_ENABLE set by environment to 0.",
        "NCCL_PROTO set by environment to LL", "Bootstrap: Using eth0",
    )  # fmt: skip
    assert found.nccl == {"NCCL_ALGO": "Ring", "NCCL_CUMEM_ENABLE": "0", "NCCL_PROTO": "LL"}
    env = {"NCCL_ALGO": "ring", "NCCL_CUMEM_ENABLE": "00", "NCCL_NTHREADS": "64"}
    assert nccl_differences(env, ["NCCL_MAX_NCHANNELS"], found.nccl) == []
    assert nccl_differences({"NCCL_ALGO": "Tree"}, ["NCCL_PROTO"], found.nccl) == [
        Mismatch("NCCL_ALGO, as NCCL logs it", "Tree", "Ring"),
        Mismatch("NCCL_PROTO, as NCCL logs it", "unset", "LL"),
    ]


def test_ranks_that_disagree_are_both_told(tmp_path: Path) -> None:
    found = nccl_lines(tmp_path, "NCCL_PROTO set by environment to LL", "NCCL_PROTO set by environment to Simple")
    assert found.nccl == {"NCCL_PROTO": "LL and Simple"}
    assert len(nccl_differences({"NCCL_PROTO": "LL"}, [], found.nccl)) == 1


@given(st.dictionaries(st.sampled_from(["NCCL_A", "NCCL_B", "NCCL_C"]), st.text(max_size=8)))
def test_what_is_as_it_was_set_is_no_difference(env: dict[str, str]) -> None:
    assert nccl_differences(env, [], env) == []


def at(second: int) -> str:
    return f"2026-11-29 18:00:{second:02d}"


def moment(second: int) -> float:
    return datetime.fromisoformat(at(second)).timestamp()


def log_of(folder: Path, *parts: str) -> Path:
    path = folder / "server.log"
    path.write_text(sg.server(*parts))
    return path


def test_what_a_level_was_served_with_is_read_from_the_lines_within_it(tmp_path: Path) -> None:
    """The first line of a rank speaks of the time before, those of the last second perhaps of the time after."""
    inside = [(6, 0), *[(7, 1), (8, 0)] * 5]
    log = log_of(
        tmp_path,
        *(sg.decode(100.0, running=1, stamp=at(1)) for _ in range(5)),
        *(sg.decode(800.0, running=n, queued=q, stamp=at(4), graph=n == 8) for n, q in inside),
        *(sg.decode(300.0, running=3, stamp=at(9)) for _ in range(5)),
    )
    found = served(log, moment(4) + 0.4, moment(9) + 0.7, 8)
    assert (found.running, found.queued) == (pytest.approx(7.5), pytest.approx(0.5))
    assert (found.graph_used, found.retractions, found.ranks) == (True, 0, 1)
    assert served(log, moment(4), moment(9), 7).graph_used is False
    assert served(log, moment(4), moment(9), None).graph_used is None


def test_ranks_that_share_the_requests_are_added_up(tmp_path: Path) -> None:
    ranks = ("DP0 TP0", "DP1 TP1")
    log = log_of(tmp_path, *(sg.decode(9.0, running=4, rank=rank, stamp=at(5)) for _ in range(9) for rank in ranks))
    found = served(log, moment(4), moment(8), 8)
    assert (found.running, found.ranks) == (8.0, 2)


def test_too_few_lines_and_no_log_say_nothing(tmp_path: Path) -> None:
    log = log_of(tmp_path, *(sg.decode(9.0, running=4, stamp=at(5)) for _ in range(4)))
    assert served(log, moment(4), moment(8), 8).running is None
    assert served(tmp_path / "none.log", moment(4), moment(8), 8) == Served()
