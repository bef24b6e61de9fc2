"""What a load measures beyond its cycles, by the formula of the profile page and as virtual time has it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_samples import a_launch, a_profile, a_setup

from spectune.analysis.measure import measure_level
from spectune.bench.arrivals import first_answer
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.prediction import predict
from spectune.engines.simulated.under_load import UnderLoad, under_load
from spectune.engines.simulated.virtual import ClosedLoop, VirtualEngine
from spectune.errors import SpectuneError

SLOW_PROMPTS = SimulatedLaunch(a_profile(target={"prefill_ktok_per_s": 4}), a_setup(3))


def loaded(launch: SimulatedLaunch, running: int, prompt: int, output: int) -> UnderLoad:
    found = predict(launch, running, prompt + output // 2, output_tokens=output).under_load
    assert found is not None
    return found


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("prompt", [5, 200, 2000])  # 5: no prefill is quicker than a step, however many join
@pytest.mark.parametrize("running", [1, 8])
def test_it_is_what_a_search_in_virtual_time_measures(steps: int, prompt: int, running: int) -> None:
    launch = a_launch(a_setup(steps))
    firsts = tuple(first_answer(slot, running, 300) for slot in range(running))
    level = VirtualEngine(launch).serve(ClosedLoop(running, 100 * running, prompt, 300, (), firsts))
    ends = sorted(level.request_ends_s.tolist())
    measured = measure_level("c", level.requests(), (ends[5 * running], ends[-5 * running]))
    found = loaded(launch, running, prompt, 300)
    assert measured.cycle_ms.est == pytest.approx(found.cycle_ms, rel=0.01)
    assert measured.decode_speed.est == pytest.approx(found.decode_speed, rel=0.02)
    assert measured.output_throughput.est == pytest.approx(found.output_throughput, rel=0.03)


def test_alone_nobody_waits_for_another() -> None:
    found, alone = loaded(SLOW_PROMPTS, 1, 100, 200), predict(SLOW_PROMPTS, 1, 200)
    assert found.cycle_ms == alone.cycle_ms
    assert found.decode_speed == alone.decode_speed
    assert found.output_throughput < alone.output_throughput  # its own prefill takes its time


@settings(deadline=None)
@given(
    running=st.integers(1, 300),
    prompt=st.floats(1, 1e5),
    output=st.floats(2, 1e4),
    length=st.floats(1, 20),
    cycle=st.floats(0.1, 1000),
)
def test_a_load_is_never_quicker_than_its_cycles(
    running: int, prompt: float, output: float, length: float, cycle: float
) -> None:
    found = under_load(
        SLOW_PROMPTS, running, prompt_tokens=prompt, output_tokens=output, accept_length=length, cycle_ms=cycle
    )
    at_most = cycle + (running - 1) * SLOW_PROMPTS.prefill_ms(prompt)
    assert cycle <= found.cycle_ms <= at_most * (1 + 1e-9)


def test_a_context_without_a_prompt_is_refused() -> None:
    with pytest.raises(SpectuneError, match="--context-tokens 40 leaves no prompt: it counts half of the 128 tokens"):
        predict(SLOW_PROMPTS, 8, 40, output_tokens=128)
