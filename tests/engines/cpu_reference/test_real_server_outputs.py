"""On the real server, greedy float32 output is the same with and without speculation."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from engine_lives import OUTPUT_TOKENS, Lives, Output


@pytest.fixture
def baseline(real_lives: Lives) -> Sequence[Output]:
    """What the target says without speculation."""
    return real_lives.of("baseline").outputs


@pytest.mark.engine
def test_baseline_is_long_and_not_repetitive(baseline: Sequence[Output]) -> None:
    assert all(output.accept_length is None for output in baseline)
    assert {len(output.ids) for output in baseline} == {OUTPUT_TOKENS}
    assert min(len(set(output.ids)) for output in baseline) >= 8
    assert len({output.ids for output in baseline}) == len(baseline)


def check_same(speculated: Sequence[Output], baseline: Sequence[Output], least_accepted: float) -> None:
    differing = [
        (plain.prompt, plain.ids, other.ids)
        for plain, other in zip(baseline, speculated, strict=True)
        if plain.ids != other.ids
    ]
    assert not differing
    lengths = [output.accept_length for output in speculated if output.accept_length is not None]
    assert len(lengths) == len(speculated), "requests without a verify: the server did not speculate"
    assert sum(lengths) / len(lengths) > least_accepted


@pytest.mark.engine
@pytest.mark.parametrize("name", ["eagle3-chain", "eagle3-tree", "standalone"])
def test_speculation_does_not_change_greedy_output(real_lives: Lives, baseline: Sequence[Output], name: str) -> None:
    check_same(real_lives.of(name).outputs, baseline, 2.5)


@pytest.mark.engine
@pytest.mark.services  # compiles C++ when it starts
def test_ngram_does_not_change_greedy_output(real_lives: Lives, baseline: Sequence[Output]) -> None:
    check_same(real_lives.of("ngram").outputs, baseline, 1.0)
