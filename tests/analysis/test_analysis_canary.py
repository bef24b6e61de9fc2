"""Telling numeric drift from corruption, and a drafter that runs for nothing from one that works."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.canary import accept_length, agreement, greedy_share, ignores_temperature, repeats_itself
from spectune.bench.canary import Answer

ids = st.lists(st.integers(0, 50), min_size=1, max_size=40).map(tuple)


def told(*answers: tuple[int, ...]) -> list[Answer]:
    return [Answer(f"p{number}", answer) for number, answer in enumerate(answers)]


def drawn(seed: int, length: int = 48) -> tuple[int, ...]:
    rng = random.Random(seed)
    return tuple(rng.randrange(1000) for _ in range(length))


def parting(answer: tuple[int, ...], after: int) -> tuple[int, ...]:
    return answer[:after] + drawn(after + 999, len(answer) - after)


BASELINE = told(*(drawn(seed) for seed in range(7)))


@given(st.lists(ids, min_size=1, max_size=8))
def test_a_launch_agrees_with_itself(answers: list[tuple[int, ...]]) -> None:
    found = agreement(told(*answers), told(*answers), told(*answers))
    assert (found.same, found.hazard, found.corrupt) == (len(answers), 0.0, False)
    assert "all" in found.words


@given(st.lists(ids, min_size=1, max_size=8), st.lists(ids, min_size=1, max_size=8))
def test_the_hazard_is_a_probability_whatever_is_said(
    mine: list[tuple[int, ...]], theirs: list[tuple[int, ...]]
) -> None:
    found = agreement(told(*mine), told(*theirs), None)
    assert 0.0 <= found.hazard <= 1.0
    assert found.words


def test_numeric_drift_is_not_corruption() -> None:
    drifting = told(*(parting(a.output_ids, 20 + 5 * n) if n % 2 else a.output_ids for n, a in enumerate(BASELINE)))
    found = agreement(drifting, BASELINE, BASELINE)
    assert not found.corrupt
    assert found.same == 4
    assert "3 of 7 greedy answers part from the baseline's, after 35 tokens on average" in found.words
    assert "parts from itself in none" in found.words


def test_half_of_the_answers_wrong_from_the_first_token_on_is_corruption() -> None:
    mine = told(*(drawn(500 + n) if n >= 4 else a.output_ids for n, a in enumerate(BASELINE)))
    found = agreement(mine, BASELINE, BASELINE)
    assert found.corrupt
    assert "3 of 7 greedy answers part from the baseline's, after 0 tokens" in found.words
    two = told(*(drawn(500 + n) if n >= 5 else a.output_ids for n, a in enumerate(BASELINE)))
    assert not agreement(two, BASELINE, BASELINE).corrupt


def test_another_text_from_the_first_tokens_on_is_corruption() -> None:
    assert agreement(told(*(drawn(100 + n) for n in range(7))), BASELINE, BASELINE).corrupt


def test_a_baseline_that_parts_from_itself_as_often_excuses_a_launch() -> None:
    again = told(*(parting(answer.output_ids, 2) for answer in BASELINE))
    mine = told(*(parting(answer.output_ids, 2)[:2] + drawn(7) for answer in BASELINE))
    assert agreement(mine, BASELINE, None).corrupt
    assert not agreement(mine, BASELINE, again).corrupt


def test_answers_that_go_round_in_circles_where_the_baselines_do_not() -> None:
    assert repeats_itself(told(*((1, 2) * 24 for _ in range(7))), BASELINE)
    assert not repeats_itself(BASELINE, told(*((1, 2) * 24 for _ in range(7))))
    assert not repeats_itself(BASELINE, BASELINE)
    assert not repeats_itself([], [])


def test_the_accept_length_needs_fifty_verifies() -> None:
    few = [Answer("a", (1,), verifies=49, correct=0)]
    assert accept_length(few) is None
    assert accept_length([*few, Answer("b", (1,), verifies=1, correct=25)]) == 1.5


@given(st.lists(st.tuples(st.integers(10, 100), st.integers(0, 400)), min_size=5, max_size=9))
def test_the_accept_length_is_at_least_one(counts: list[tuple[int, int]]) -> None:
    length = accept_length([Answer(str(n), (1,), v, c) for n, (v, c) in enumerate(counts)])
    assert length is not None
    assert length >= 1.0


def test_a_launch_that_samples_only_first_tokens_is_told_from_one_that_samples() -> None:
    """sglang#31214: on a CPU the verify is greedy; the first token comes from the prefill, which samples."""
    continued = [Answer(f"p{n}", drawn(n)) for n in range(7)]
    greedy = [Answer(f"p{n}", (1, *drawn(n))) for n in range(7)]
    sampled = [Answer(f"p{n}", (1, *drawn(n + 100))) for n in range(7)]
    assert (greedy_share(greedy, continued), greedy_share(sampled, continued)) == (1.0, 0.0)
    assert greedy_share([Answer("p0", (1, 2))], continued) is None, "too short to tell"
    assert greedy_share(greedy, []) is None, "a study that was begun before it was asked"
    assert ignores_temperature(1.0, 0.0)
    assert ignores_temperature(5 / 7, 1 / 7), "a near tie parts some"
    assert not ignores_temperature(0.0, 0.0)
    assert not ignores_temperature(1.0, 1.0), "the baseline does not sample either"
    assert not ignores_temperature(1.0, None)
    assert not ignores_temperature(None, 0.0)
