import dataclasses
import random

import pytest
from analysis_records import made_record
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis import acceptance

histograms = st.lists(st.integers(0, 500), min_size=2, max_size=12).filter(any)


def test_accept_length_counts_the_bonus_token():
    assert acceptance.accept_length(0, 10) == 1.0
    assert acceptance.accept_length(15, 10) == 2.5
    assert acceptance.accept_length(0, 0) == 1.0


@given(prompt=st.integers(0, 10**6), output=st.integers(0, 10**5))
def test_a_bucket_holds_the_mean_context_between_two_powers_of_two(prompt, output):
    record = dataclasses.replace(made_record(prompt_tokens=prompt), output_tokens=output)
    low, high = map(int, acceptance.context_bucket(record).split("-"))
    assert low <= max(1, prompt + output // 2) <= high == 2 * low - 1
    assert low.bit_count() == 1


def test_accept_length_pools_counts_and_leaves_out_what_failed():
    records = [
        made_record(verifies=10, correct=10, prompt_class="code"),
        made_record(verifies=30, correct=90, prompt_class="chat"),
        made_record(verifies=100, correct=0, error="lost"),
    ]
    assert acceptance.accept_length_of(records) == 3.5
    assert acceptance.accept_length_by_class(records) == {"chat": 4.0, "code": 2.0}


@given(histogram=histograms)
def test_survival_never_rises_and_gives_back_the_accept_length(histogram):
    found = acceptance.position_acceptance(histogram)
    assert len(found.survival) == len(histogram) - 1
    assert list(found.survival) == sorted(found.survival, reverse=True)
    correct = sum(accepted * count for accepted, count in enumerate(histogram))
    assert 1.0 + sum(found.survival) == pytest.approx(acceptance.accept_length(correct, sum(histogram)))


@given(histogram=histograms, data=st.data())
def test_a_shorter_chain_accepts_what_the_longer_one_would_have(histogram, data):
    steps = data.draw(st.integers(0, len(histogram) - 1))
    cut = [count if accepted < steps else 0 for accepted, count in enumerate(histogram[: steps + 1])]
    cut[steps] = sum(histogram[steps:])
    predicted = 1.0 + sum(acceptance.position_acceptance(histogram).survival[:steps])
    correct = sum(accepted * count for accepted, count in enumerate(cut))
    assert predicted == pytest.approx(acceptance.accept_length(correct, sum(cut)))


@given(rate=st.floats(0.0, 0.99), steps=st.integers(0, 12))
def test_constant_acceptance_matches_the_closed_form(rate, steps):
    expected = (1 - rate ** (steps + 1)) / (1 - rate)
    assert acceptance.constant_acceptance_length(rate, steps) == pytest.approx(expected)


def test_conditional_acceptance_recovers_a_constant_rate():
    rng = random.Random(1)
    histogram = [0] * 5
    for _ in range(20_000):
        accepted = next((i for i in range(4) if rng.random() > 0.7), 4)
        histogram[accepted] += 1
    assert acceptance.position_acceptance(histogram).conditional == pytest.approx([0.7] * 4, abs=0.02)


def test_histograms_of_different_lengths_add_up():
    assert acceptance.sum_histograms([[1, 2], [1, 1, 5], []]) == (2, 3, 5)
    assert acceptance.position_acceptance([]).survival == ()
