"""What a launch really runs, held against what it says."""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any

import sglang_log_lines as sg

from spectune.engines.sglang.server_log import ServerFacts, read_back
from spectune.engines.sglang.server_log.read_back import GraphUse, graphs_used
from spectune.engines.sglang.server_log.reader import starts


def read(*parts: str, **values: Any) -> ServerFacts:
    return list(starts(io.BytesIO(sg.server(*parts, **values).encode())))[-1]


def second(text: str) -> float:
    return datetime.fromisoformat(text).astimezone().timestamp()


def test_graphs_by_batch_leave_the_first_interval_out() -> None:
    """sglang#5502: the first interval is the engine's own warm-up, whatever it says."""
    facts = read(
        sg.decode(0.4, accept=2.0, graph=False),
        sg.decode(60.0, accept=2.0),
        sg.decode(60.0, accept=2.0, running=8),
        sg.decode(60.0, accept=2.0, running=8, graph=False),
        captured=[1, 2, 4],
    )
    used = graphs_used(facts)
    assert used == {1: GraphUse(1, 0), 8: GraphUse(1, 1)}
    assert used[1].always
    assert not used[8].always
    assert read_back(facts, {}).graph_batches == {"verify": (1, 2, 4)}


def test_graphs_within_a_level() -> None:
    early, late = "2026-11-29 18:00:10", "2026-11-29 18:05:00"
    facts = read(
        sg.decode(9.0), sg.decode(60.0, stamp=early), sg.decode(60.0, graph=False, running=2, stamp=late), tp_size=1
    )
    assert graphs_used(facts, second("2026-11-29 18:00:05"), second("2026-11-29 18:01:00")) == {1: GraphUse(1, 0)}
    assert graphs_used(facts, second(late) + 0.4) == {2: GraphUse(0, 1)}  # the log knows whole seconds only


def test_fastrl_4_plain_steps_lose_their_graphs_above_a_threshold() -> None:
    """fastrl#4: with speculation off above a batch size, plain decoding had no graph; both regimes are shown."""
    facts = read(sg.decode(9.0), sg.decode(800.0, running=8, accept=2.5), sg.decode(5452.0, running=48, graph=False))
    assert graphs_used(facts) == {8: GraphUse(1, 0), 48: GraphUse(0, 1)}


def test_the_server_goes_before_its_log() -> None:
    facts = read(sg.decode(9.0), captured=[1, 2], attention_backend="fa3", **sg.speculation())
    info = {
        "attention_backend": "triton",
        "max_total_num_tokens": 77,
        "internal_states": [{"decode_cuda_graph_bs": [4, 1], "effective_max_running_requests_per_dp": 3}],
    }
    back = read_back(facts, info)
    assert back.backends == {"attention_backend": "triton"}
    assert back.graph_batches == {"verify": (1, 4)}
    assert (back.kv_tokens, back.max_running_requests) == (77, 3)
    assert read_back(facts, {}).backends == {"attention_backend": "fa3"}
    assert read_back(facts, {"internal_states": [{"decode_cuda_graph_bs": []}]}).graph_batches == {}


def test_nothing_known_is_nothing_said() -> None:
    back = read_back(ServerFacts(), {})
    assert (back.graph_batches, back.kv_tokens, back.backends) == ({}, None, {})
    assert graphs_used(ServerFacts()) == {}
