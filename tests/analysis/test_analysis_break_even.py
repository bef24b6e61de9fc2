import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.break_even import break_even, break_even_arithmetic, break_even_from_speedup
from spectune.analysis.next_steps import next_steps
from spectune.errors import InputProblems, SpectuneError

speeds = st.floats(1.0, 1000.0)
cycles = st.floats(0.5, 500.0)
lengths = st.floats(1.0, 16.0)


@pytest.mark.parametrize(("speed", "needed"), [(82, 2.46), (100, 3.0), (120, 3.6)])
def test_golden_break_even_of_the_field_case(speed, needed):
    result = break_even(baseline_tok_s=speed, cycle_ms=30, accept_length=2.0)
    assert result.break_even == pytest.approx(needed, abs=1e-9)


def test_golden_speed_and_bound_of_the_field_case():
    result = break_even(baseline_tok_s=82, cycle_ms=30, accept_length=2.0, num_steps=2, targets=[60, 100, 120])
    assert round(result.speed_tok_s, 1) == 66.7
    assert result.bound == 3
    assert not result.pays
    assert [target.verdict for target in result.targets] == ["reached", "perfect drafter", "out of reach"]
    assert "120 tok/s needs an accept length of 3.60 (out of reach: 2 steps can give 3 at most)" in result.words


def test_golden_contradiction_of_the_field_case():
    result = break_even(baseline_tok_s=82, cycle_ms=30, accept_length=2.0, num_steps=2, measured_tok_s=60)
    found = result.contradiction
    assert found is not None
    assert round(found.implied_cycle_ms, 1) == 33.3
    assert round(found.missing_ms, 1) == 3.3
    assert round(found.break_even, 2) == 2.73  # with 82; the quoted 2.75 used 82.5
    assert round(result.change, 2) == -0.27
    assert any("3.3 ms missing" in words for words in result.words)
    assert any("27% slower" in words for words in result.words)


def test_golden_2_75_is_the_break_even_of_the_baseline_range_seen():
    found = break_even(baseline_tok_s=82.5, cycle_ms=30, accept_length=2.0, measured_tok_s=60).contradiction
    assert found is not None
    assert round(found.break_even, 2) == 2.75


def test_cycle_that_is_too_long_is_a_contradiction_too():
    found = break_even(baseline_tok_s=82, cycle_ms=30, accept_length=2.0, measured_tok_s=80).contradiction
    assert found is not None
    assert found.missing_ms < 0
    assert "too many" in found.words


def test_hopeless_and_impossible_configurations_are_said():
    words = break_even(baseline_tok_s=200, cycle_ms=30, accept_length=2.0, num_steps=2).words
    assert any("no drafter makes speculation pay" in sentence for sentence in words)
    words = break_even(baseline_tok_s=20, cycle_ms=30, accept_length=2.0).words
    assert any("measure the baseline again" in sentence for sentence in words)


def test_json_has_every_part():
    data = break_even(baseline_tok_s=82, cycle_ms=30, accept_length=2.0, targets=[100], measured_tok_s=60).to_json()
    assert data["targets"][0]["accept_length"] == pytest.approx(3.0)
    assert data["contradiction"]["missing_ms"] == pytest.approx(10 / 3)


def test_it_says_what_cycle_would_pay_and_what_the_steps_can_give():
    result = break_even(baseline_tok_s=82, cycle_ms=30, accept_length=2.0, num_steps=2)
    assert result.break_even_cycle_ms == pytest.approx(24.39, abs=0.01)
    assert "at accept length 2 any cycle below 24.4 ms pays" in result.words
    assert "2 steps can give an accept length of 3 at most: 100.0 tok/s at this cycle" in result.words


def test_what_to_do_next_is_in_the_order_to_try_it_in():
    figures = {"baseline_tok_s": 82, "cycle_ms": 30, "accept_length": 2.0}
    drafter, cycle, without, measure = next_steps(break_even(**figures))
    assert drafter == "try a drafter that accepts more than 2.46 on this traffic"
    assert cycle.startswith("shorten the cycle to less than 24.4 ms: fewer draft steps")
    assert without == "where neither can be had, launch without speculation: 82 tok/s"
    assert "`spectune search`" in measure
    assert "fewer draft steps" not in next_steps(break_even(**figures, num_steps=1))[1]


def test_no_drafter_is_advised_where_none_can_pay():
    steps = next_steps(break_even(baseline_tok_s=200, cycle_ms=30, accept_length=2.0, num_steps=2))
    assert not any("a drafter that accepts" in words for words in steps)


def test_what_pays_is_kept_and_figures_that_cannot_be_are_measured_again_first():
    kept = next_steps(break_even(baseline_tok_s=82, cycle_ms=30, accept_length=2.8))[0]
    assert kept.startswith("keep speculation while it accepts more than 2.46 and a cycle takes less than 34.1 ms")
    doubted = next_steps(break_even(baseline_tok_s=82, cycle_ms=30, accept_length=2.0, measured_tok_s=60))
    assert doubted[0].startswith("measure cycle, accept length and speed again")
    assert "more than 2.73" in doubted[1]
    assert "baseline again" in next_steps(break_even(baseline_tok_s=20, cycle_ms=30, accept_length=2.0))[0]


@given(baseline=st.floats(0.001, 1_000_000.0), cycle=st.floats(0.001, 1_000_000.0))
def test_the_arithmetic_can_be_redone_with_the_figures_printed(baseline, cycle):
    speed, ms = (float(part) for part in break_even_arithmetic(baseline, cycle).removesuffix(" ms").split(" tok/s × "))
    assert f"{speed * ms / 1000:.2f}" == f"{baseline * cycle / 1000:.2f}"


def test_what_is_missing_is_the_difference_of_the_figures_printed():
    result = break_even(baseline_tok_s=82, cycle_ms=30, accept_length=1.934, targets=[148.9])
    assert "148.9 tok/s needs an accept length of 4.47 (2.54 more than now)" in result.words
    assert break_even_arithmetic(442.17, 6.512) == "442.2 tok/s × 6.512 ms"


@given(baseline=speeds, cycle=cycles, accept=lengths)
def test_pays_iff_accept_length_is_above_break_even(baseline, cycle, accept):
    result = break_even(baseline_tok_s=baseline, cycle_ms=cycle, accept_length=accept)
    speedup = result.speed_tok_s / baseline
    if not math.isclose(accept, result.break_even, rel_tol=1e-9):
        assert result.pays == (accept > result.break_even) == (speedup > 1.0)
    assert break_even_from_speedup(accept, speedup) == pytest.approx(result.break_even)


@given(baseline=speeds, cycle=cycles, accept=lengths)
def test_a_consistent_measurement_is_no_contradiction(baseline, cycle, accept):
    result = break_even(
        baseline_tok_s=baseline, cycle_ms=cycle, accept_length=accept, measured_tok_s=accept / cycle * 1000
    )
    assert result.contradiction is None


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"baseline_tok_s": 0.0}, "baseline"),
        ({"baseline_tok_s": math.nan}, "baseline"),
        ({"cycle_ms": -1.0}, "cycle"),
        ({"cycle_ms": math.inf}, "cycle"),
        ({"cycle_ms": 1e-300}, "from 0.001 to 1,000,000, but got 1e-300"),
        ({"baseline_tok_s": 2e6}, "from 0.001 to 1,000,000, but got 2e"),
        ({"accept_length": 0.16}, "accept rate"),
        ({"accept_length": 3.2}, "at most"),
        ({"num_steps": 0}, "at least 1"),
        ({"targets": [100.0, -5.0]}, "target"),
        ({"measured_tok_s": 0.0}, "measured"),
    ],
)
def test_impossible_inputs_are_refused(change, complaint):
    inputs = {"baseline_tok_s": 82.0, "cycle_ms": 30.0, "accept_length": 2.0, "num_steps": 2} | change
    with pytest.raises(SpectuneError, match=complaint):
        break_even(**inputs)


def test_all_impossible_inputs_are_named_at_once():
    with pytest.raises(InputProblems) as caught:
        break_even(baseline_tok_s=-1, cycle_ms=0, accept_length=0.5, num_steps=2, targets=[0])
    assert len(caught.value.problems) == 4


def test_the_arithmetic_loads_no_heavy_library():
    heavy = {"numpy", "aiohttp", "optuna"}
    program = f"import sys, spectune.analysis.break_even; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_speed_that_was_seen_implies_the_cycle():
    result = break_even(baseline_tok_s=82, cycle_ms=None, accept_length=2.0, measured_tok_s=60)
    assert result.cycle_ms == pytest.approx(33.333, abs=0.001)
    assert result.contradiction is None
    assert "accept length 2 at 60.0 tok/s means a cycle of 33.33 ms" in result.words
