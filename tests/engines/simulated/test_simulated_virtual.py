"""The form in virtual time: it is the cost model with its noise, request by request."""

from __future__ import annotations

import math

import numpy as np
import pytest
from simulated_samples import a_launch, a_profile, a_setup

from spectune.analysis.measure import measure_level
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.prediction import predict
from spectune.engines.simulated.profile_schema import Noise
from spectune.engines.simulated.randomness import Pace
from spectune.engines.simulated.virtual import ClosedLoop, VirtualEngine
from spectune.errors import SpectuneError

LOOP = ClosedLoop(8, 64, 200, 256)


def noise(**changes: object) -> Noise:
    return Noise.model_validate(changes)


def test_without_noise_it_is_the_prediction() -> None:
    launch = a_launch(a_setup(3))
    level = VirtualEngine(launch).serve(ClosedLoop(4, 400, 200, 300))
    predicted = predict(launch, 4, 350)
    assert level.accept_length == pytest.approx(predicted.accept_length, rel=0.01)
    assert level.cycle_ms == pytest.approx(predicted.cycle_ms, rel=0.01)
    assert level.output_throughput == pytest.approx(predicted.output_throughput, rel=0.06)  # prefills take their time


@pytest.mark.parametrize("steps", [0, 3])
def test_whoever_speculates_or_not_waits_for_the_prompts_of_others(steps: int) -> None:
    launch = a_launch(a_setup(steps))
    level = VirtualEngine(launch).serve(ClosedLoop(4, 400, 200, 300, (), (75, 150, 225, 300)))
    cycle_ms = predict(launch, 4, 350).cycle_ms
    waits_ms = 3 * launch.prefill_ms(200)  # of the other three, once in every answer
    measured = measure_level("c4", level.requests(), (5.0, float(level.request_ends_s.max()) - 5.0))
    cycles = 299 / measured.accept_length.est
    assert measured.cycle_ms.est == pytest.approx(cycle_ms + waits_ms / cycles, rel=0.002)


@pytest.mark.parametrize("together", [1, 3])
def test_no_prefill_is_quicker_than_a_step(together: int) -> None:
    launch = a_launch()
    requests = VirtualEngine(launch).serve(ClosedLoop(together, together, 5, 11)).requests()
    step_s = launch.cycle_ms(1, 0) / 1000
    assert [one.first_token_s for one in requests] == pytest.approx([step_s] * together)  # one forward for all
    assert launch.prefill_ms(10_000) > 1000 * step_s


def test_answers_that_begin_together_go_on_ending_together() -> None:
    ends = VirtualEngine(a_launch()).serve(ClosedLoop(4, 40, 200, 300)).request_ends_s
    apart = VirtualEngine(a_launch()).serve(ClosedLoop(4, 40, 200, 300, (), (75, 150, 225, 300))).request_ends_s
    assert (len(set(ends.tolist())), len(set(apart.tolist()))) == (10, 40)


def test_a_single_stream_by_hand() -> None:
    level = VirtualEngine(a_launch()).serve(ClosedLoop(1, 2, 400, 11))
    first, second = level.requests()
    assert first.first_token_s == pytest.approx(0.020)
    assert first.end_s == pytest.approx(0.020 + 10 * 0.009)
    assert second.sent_s == pytest.approx(first.end_s)
    assert [tokens for _, tokens in first.chunks] == list(range(1, 12))
    assert (first.spec_verify_ct, first.finish_reason) == (0, "length")


def test_requests_queue_behind_the_engine_s_limit() -> None:
    level = VirtualEngine(a_launch(a_setup(max_running_requests=2))).serve(ClosedLoop(4, 8, 100, 21))
    waits = [one.first_token_s - one.sent_s for one in level.requests() if one.first_token_s is not None]
    assert waits[0] == pytest.approx(0.010)
    assert min(waits[4:]) > 0.15


def test_the_counters_fit_together() -> None:
    for one in VirtualEngine(a_launch(a_setup(4))).serve(LOOP).requests():
        assert sum(one.spec_correct_drafts_histogram) == one.spec_verify_ct == len(one.chunks) - 1
        assert sum(i * n for i, n in enumerate(one.spec_correct_drafts_histogram)) == one.spec_num_correct_drafts
        assert one.chunks[-1] == (one.end_s, 256)
        assert one.sent_s <= one.chunks[0][0] < one.end_s


def test_the_same_seed_gives_the_same_numbers_and_another_launch_others() -> None:
    noisy = {"noise": {"launch_sd": 0.02, "window_sd": 0.02}}
    first, again, other = (VirtualEngine(a_launch(a_setup(3), number=n, **noisy)).serve(LOOP) for n in (0, 0, 1))
    assert first.requests() == again.requests()
    assert first.requests() != other.requests()


def test_levels_follow_each_other_on_one_clock() -> None:
    engine = VirtualEngine(a_launch(a_setup(3)))
    first = engine.serve(LOOP)
    second = engine.serve(LOOP)
    assert second.began_s == pytest.approx(first.cycle_ends_s[-1])
    assert [one.prompt_id for one in second.requests()] == [str(number) for number in range(64, 128)]


def test_classes_differ() -> None:
    launch = a_launch(a_setup(3), acceptance={"by_class": {"code": 1.3, "random": 0.2}})
    level = VirtualEngine(launch).serve(ClosedLoop(8, 200, 200, 256, ("code", "random")))
    for name in ("code", "random"):
        mine = [one for one in level.requests() if one.prompt_class == name]
        length = 1 + sum(one.spec_num_correct_drafts for one in mine) / sum(one.spec_verify_ct for one in mine)
        assert length == pytest.approx(launch.accept_length(name, 0), rel=0.03)


def test_long_contexts_accept_less() -> None:
    launch = a_launch(a_setup(3), acceptance={"context_halving_ktokens": 4})
    short, long = (VirtualEngine(launch).serve(ClosedLoop(4, 32, tokens, 64)) for tokens in (100, 8000))
    assert long.accept_length < 0.8 * short.accept_length
    assert long.accept_length == pytest.approx(launch.accept_length(None, 8032), rel=0.05)


def test_launch_noise_is_common_to_all_windows() -> None:
    profile = a_profile(noise={"launch_sd": 0.05})
    factors = [SimulatedLaunch(profile, a_setup(), number=n).pace.factors(300)[:300] for n in range(200)]
    assert all(len(set(one.tolist())) == 1 for one in factors)
    logs = [math.log(one[0]) for one in factors]
    assert np.std(logs) == pytest.approx(0.05, rel=0.2)
    assert np.mean(logs) == pytest.approx(0.0, abs=0.012)


def test_windows_drift_and_jumps() -> None:
    windows = np.log(Pace(noise(window_sd=0.02), 1, 0, 0.0).factors(3000)[:3000])
    assert np.std(windows) == pytest.approx(0.02, rel=0.1)
    drifting = Pace(noise(drift_per_hour=0.1), 1, 0, 2.0)
    assert drifting.factor(0) == pytest.approx(1.1**2)
    assert drifting.factor(3600) == pytest.approx(1.1**3)
    jumping = Pace(noise(jumps=({"at_hour": 1.5, "cycle": 1.08}, {"at_hour": 9, "cycle": 2.0})), 1, 0, 1.0)
    assert (jumping.factor(1799), jumping.factor(1800)) == (1.0, 1.08)


def test_each_cycle_takes_the_factor_of_the_second_it_begins_in() -> None:
    launch = a_launch(noise={"window_sd": 0.1})
    level = VirtualEngine(launch).serve(ClosedLoop(1, 4, 200, 256))
    for begin, end in zip(level.cycle_begins_s, level.cycle_ends_s, strict=True):
        assert end - begin == pytest.approx(0.009 * launch.pace.factor(int(begin)))


def test_the_first_requests_are_slow() -> None:
    launch = a_launch(noise={"first_requests_slow": {"requests": 2, "factor": 3.0}})
    durations = [
        one.end_s - one.first_token_s
        for one in VirtualEngine(launch).serve(ClosedLoop(1, 4, 200, 11)).requests()
        if one.first_token_s is not None
    ]
    assert durations == pytest.approx([0.27, 0.27, 0.09, 0.09])


def test_what_fails_does_not_serve() -> None:
    with pytest.raises(SpectuneError, match="oom at startup"):
        VirtualEngine(a_launch(target={"weights_gb": 200})).serve(LOOP)
    with pytest.raises(SpectuneError, match="exceeds the KV cache"):
        VirtualEngine(a_launch()).serve(ClosedLoop(1, 1, 10_000_000, 2))


def test_a_share_of_the_requests_is_given_up() -> None:
    faults = [{"when": {"speculation": True}, "at": "bench", "kind": "partial_failure", "share": 0.3}]
    requests = VirtualEngine(a_launch(a_setup(3), faults=faults)).serve(ClosedLoop(8, 400, 100, 64)).requests()
    failed = [one for one in requests if one.error is not None]
    assert len(failed) / 396 == pytest.approx(0.3, abs=0.08)
    assert all(one.spec_verify_ct == 1 for one in failed)
    assert all(one.error is None for one in requests[:4])
