"""The arithmetic of a cycle and of memory, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_samples import a_launch, a_profile, a_setup

from spectune.engines.simulated import memory
from spectune.engines.simulated.cost_model import experts_ms, padded, target_ms
from spectune.engines.simulated.faults import Failure
from spectune.engines.simulated.prediction import predict
from spectune.engines.simulated.profile_schema import Moe
from spectune.engines.simulated.setup import captured


def test_a_cycle_by_hand() -> None:
    """Batch 3 is padded to 4; host + S·draft + target(4·N), KV of the 3 running requests."""
    launch = a_launch(a_setup(3, 2, 5), target={"kv_ms_per_ktoken": 0.5})
    draft = 3 * (0.5 + 0.01 * 3 * 2)
    target = 8.0 + 0.1 * (4 * 5 - 1) + 0.5 * 6
    assert launch.cycle_ms(3, 6000) == pytest.approx(1.0 + draft + target)


def test_without_speculation_there_is_no_draft() -> None:
    assert a_launch(a_setup()).cycle_ms(3, 0) == pytest.approx(1.0 + 8.0 + 0.1 * 3)


def test_beyond_the_captured_sizes_it_runs_eagerly_and_unpadded() -> None:
    launch = a_launch(a_setup(3))
    assert launch.cycle_ms(33, 0) == pytest.approx(1.0 + 3 * (1.0 + 0.01 * 33) + 20.0 + 0.1 * (33 * 4 - 1))
    assert (launch.graph_used(32), launch.graph_used(33)) == (True, False)


@pytest.mark.parametrize(
    ("changes", "captured_sizes", "expected"),
    [
        ({}, (), 1.0 + 3 * 1.01 + 20.0 + 0.1 * 3),
        ({"target": {"verify_graph": False}}, (1,), 1.0 + 3 * 0.51 + 20.0 + 0.1 * 3),
        ({"draft": {"graph": False}}, (1,), 1.0 + 3 * 1.01 + 8.0 + 0.1 * 3),
    ],
)
def test_graphs_are_switched_per_phase(
    changes: dict[str, object], captured_sizes: tuple[int, ...], expected: float
) -> None:
    assert a_launch(a_setup(3, captured=captured_sizes), **changes).cycle_ms(1, 0) == pytest.approx(expected)


def test_verify_graph_does_not_concern_the_baseline() -> None:
    assert a_launch(a_setup(), target={"verify_graph": False}).graph_used(1)
    assert a_launch(a_setup(), target={"verify_graph": False}).captured


def test_a_verify_that_is_not_captured_takes_no_graph_memory() -> None:
    eager = a_launch(a_setup(3), target={"verify_graph": False}, graphs={"mb_per_token": 100.0})
    assert eager.captured == ()
    assert memory.graphs_gb(eager.profile.file, eager.setup) == 0
    assert memory.graphs_fit(eager.profile.file, eager.setup)
    assert memory.graphs_gb(eager.profile.file, a_setup()) > 0


def test_the_knee() -> None:
    target = a_profile(target={"knee_tokens": 10, "knee_factor": 3.0}).file.target
    assert target_ms(target, 10, 0, graph=True) == pytest.approx(8.0 + 0.9)
    assert target_ms(target, 12, 0, graph=True) == pytest.approx(8.0 + 0.9 + 0.6)


@given(st.integers(1, 64), st.integers(1, 2000))
def test_experts_saturate(active: int, tokens: int) -> None:
    moe = Moe(experts=64, active=active, expert_ms=5.0)
    share = active / 64
    expected = 5.0 * ((1 - (1 - share) ** tokens) - share)
    assert experts_ms(moe, tokens) == pytest.approx(expected, abs=1e-9)
    assert experts_ms(moe, tokens) <= experts_ms(moe, tokens + 1) + 1e-12


@given(st.integers(1, 200), st.integers(1, 7))
def test_a_larger_batch_never_takes_less(batch: int, steps: int) -> None:
    launch = a_launch(a_setup(steps), target={"knee_tokens": 100, "knee_factor": 2.0})
    assert launch.cycle_ms(batch + 1, 0) >= launch.cycle_ms(batch, 0)


def test_padding() -> None:
    assert [padded((1, 4, 8), batch) for batch in (1, 2, 8, 9)] == [1, 4, 8, None]
    assert captured([1, 2, 8, 64], 48) == (1, 2, 8, 48)
    assert captured([1, 2, 8], 48) == (1, 2, 8)


def test_effects_multiply_when_all_their_conditions_hold() -> None:
    effects = [
        {"when": {"decode-attention-backend": "triton", "speculative-eagle-topk": ">1"}, "cycle": 1.1},
        {"when": {"env.NCCL_PROTO": "LL"}, "cycle": 0.9},
        {"when": {"env.NCCL_ALGO": "unset", "speculation": False}, "cycle": 1.5},
        {"when": {"cuda-graph-max-bs-decode": ">=32"}, "cycle": 2.0},
    ]
    tree = a_setup(3, 2, 5, decode_attention_backend="triton", env={"NCCL_PROTO": "LL"})
    assert a_launch(tree, effects=effects).effects == pytest.approx(1.1 * 0.9 * 2.0)
    chain = a_setup(3, decode_attention_backend="triton", captured=())
    assert a_launch(chain, effects=effects).effects == 1.0
    assert a_launch(a_setup(captured=()), effects=effects).effects == 1.5
    assert a_launch(tree, effects=effects).cycle_ms(1, 0) == pytest.approx(1.98 * a_launch(tree).cycle_ms(1, 0))


def test_memory_of_one_gpu() -> None:
    file = a_profile().file
    assert memory.weights_gb(file, a_setup()) == 20
    assert memory.weights_gb(file, a_setup(3)) == 21
    assert memory.kv_tokens(file, a_setup(3)) == (64_000 - 21_000) / 0.1
    assert memory.graphs_gb(file, a_setup(3)) == pytest.approx(0.5 * 63 * 4 / 1000)
    assert memory.graph_room_gb(file, a_setup()) == pytest.approx(0.2 * 80 - 2)


def test_what_does_not_fit_fails_at_its_point() -> None:
    assert predict(a_launch(target={"weights_gb": 200}), 1, 100).fails == Failure("startup", "oom")
    tight = {"graphs": {"mb_per_token": 100.0}}
    assert predict(a_launch(a_setup(3), **tight), 1, 100).fails == Failure("capture", "oom")
    assert predict(a_launch(a_setup(3, captured=()), **tight), 1, 100).fails is None


@given(st.integers(2, 40), st.floats(0.3, 0.95))
def test_running_out_of_graph_memory_is_monotone(tokens: int, fraction: float) -> None:
    file = a_profile(graphs={"mb_per_token": 10.0}).file
    fits = memory.graphs_fit(file, a_setup(3, 4, tokens, mem_fraction_static=fraction))
    assert not fits or memory.graphs_fit(file, a_setup(3, 4, tokens - 1, mem_fraction_static=fraction))
    assert fits or not memory.graphs_fit(file, a_setup(3, 4, tokens, mem_fraction_static=fraction + 0.01))


def test_what_runs_at_once_is_bounded_by_requests_and_kv() -> None:
    launch = a_launch(a_setup(max_running_requests=10))
    assert launch.running(4, 100) == 4
    assert launch.running(40, 100) == 10
    assert launch.running(40, 200_000) == 2
    prediction = predict(launch, 40, 100)
    assert prediction.running == 10
    assert prediction.output_throughput == pytest.approx(10 * prediction.decode_speed)


def test_decisive_faults_are_predicted_in_the_order_of_the_points() -> None:
    faults = [
        {"when": {"speculation": False}, "at": "bench", "kind": "hang"},
        {"when": {"speculation": False}, "at": "load", "kind": "slow_start"},
        {"when": {"speculation": False, "launch": 2}, "at": "load", "kind": "crash"},
    ]
    assert predict(a_launch(faults=faults), 1, 100).fails == Failure("bench", "hang")
    assert predict(a_launch(a_setup(launch=2), faults=faults), 1, 100).fails == Failure("load", "crash")
    assert predict(a_launch(a_setup(3), faults=faults), 1, 100).fails is None
