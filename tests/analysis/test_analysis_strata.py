import dataclasses
import random

import pytest
from analysis_records import made_record, simulated_level
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.acceptance import context_bucket
from spectune.analysis.estimate import Estimate
from spectune.analysis.measure import measure_level
from spectune.analysis.strata import strata, worst, worst_in_words


@pytest.fixture(scope="module")
def measured():
    acceptance = {"chat": 0.3, "code": 0.8}
    records = simulated_level(
        random.Random(5), concurrency=4, cycle_s=0.02, acceptance=acceptance, steps=3, length_s=40.0
    )
    long = [dataclasses.replace(r, prompt_tokens=5000) if i % 3 == 0 else r for i, r in enumerate(records)]
    return measure_level("c4", long, (2.0, 38.0))


@given(prompt=st.integers(0, 10**6), output=st.integers(0, 10**5))
def test_a_bucket_holds_the_mean_context_between_two_powers_of_two(prompt, output):
    record = dataclasses.replace(made_record(prompt_tokens=prompt), output_tokens=output)
    low, high = map(int, context_bucket(record).split("-"))
    assert low <= max(1, prompt + output // 2) <= high == 2 * low - 1
    assert low.bit_count() == 1


def test_every_class_and_context_has_its_margin_over_the_same_break_even(measured):
    found = strata(measured, baseline_tok_s=100.0)
    assert [(s.kind, s.name) for s in found][:2] == [("class", "chat"), ("class", "code")]
    contexts = [int(s.name.split("-")[0]) for s in found if s.kind == "context"]
    assert contexts == sorted(contexts)
    assert contexts[-1] == 4096
    for stratum in found:
        assert stratum.break_even == pytest.approx(100.0 * measured.cycle_ms.est / 1000)
        assert stratum.margin.est == pytest.approx(stratum.accept_length.est / stratum.break_even)
    assert sum(s.requests for s in found if s.kind == "class") == measured.n_requests


@pytest.mark.parametrize(
    ("baseline", "verdict"), [(100.0, "loses there"), (10.0, "pays even there"), (70.5, "is not known")]
)
def test_the_worst_class_is_named_with_what_it_means(measured, baseline, verdict):
    sentences = worst_in_words(strata(measured, baseline))
    assert sentences[0].startswith("chat prompts gain least: accept length 1.4")
    assert verdict in sentences[0]
    assert sentences[1].startswith("contexts of ")


def test_chance_in_few_requests_is_not_called_the_worst(measured):
    few = dataclasses.replace(
        measured,
        accept_length_by_class=measured.accept_length_by_class | {"poem": Estimate(1.01, 1.0, 1.1)},
        requests_by_class=measured.requests_by_class | {"poem": 2},
    )
    found = strata(few, 100.0)
    assert worst(found, "class").name == "chat"
    assert worst([s for s in found if s.name == "chat"], "class") is None
