"""What failures teach, and what they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_samples import baseline, chain, record

from spectune.search.proposing.exclusions import excluded, learned
from spectune.search.storage.records import TrialRecord
from spectune.serving import Failure, FailureClass
from spectune.space import Candidate

OOM = Failure(FailureClass.MEMORY, "GPU memory ran out: CUDA out of memory", "")


def failed(candidate: Candidate, failure: Failure, trial: int = 1) -> TrialRecord:
    return replace(record(trial, candidate), failure=failure, levels=())


def varied(candidate: Candidate, **changes: Any) -> Candidate:
    named = {name.replace("_", "-"): value for name, value in changes.items()}
    return Candidate.of({**candidate.values, **named})


def sized(steps: int, sizes: tuple[int, ...], fraction: float = 0.8) -> Candidate:
    return varied(chain(steps), cuda_graph_bs_decode=sizes, mem_fraction_static=fraction)


def test_nothing_is_learned_from_success_or_from_what_was_not_the_candidates_fault() -> None:
    port = Failure(FailureClass.PORT_IN_USE, "held", "")
    assert learned([record(0, baseline()), failed(chain(2), port)]) == []


def test_a_drafter_that_does_not_work_is_given_up_with_all_its_settings() -> None:
    dead = Failure(FailureClass.DRAFTER, "accept length 1.00", "")
    found = learned([failed(chain(2), dead, trial=4)])
    assert excluded(chain(4), found) is not None
    assert excluded(chain(3, drafter="org/weak"), found) is None
    assert excluded(baseline(), found) is None
    assert "org/strong does not work: see trial 4" in found[0].words
    # Contradictory: it has worked before.
    assert learned([record(0, chain(1)), failed(chain(2), dead)]) == []


def test_memory_is_monotone_in_captured_tokens_and_memory_fraction() -> None:
    found = learned([failed(sized(3, (1, 2, 4, 8)), OOM)])
    for worse in (sized(3, (1, 2, 4, 8)), sized(4, (1, 2, 4, 8)), sized(3, (16,)), sized(3, (1, 2, 4, 8), 0.9)):
        assert excluded(worse, found) is not None
    for better in (sized(2, (1, 2, 4, 8)), sized(3, (1, 2, 4)), sized(3, (1, 2, 4, 8), 0.7), baseline()):
        assert excluded(better, found) is None
    assert excluded(varied(sized(4, (8,)), page_size=64), found) is None, "other settings may need less"
    assert excluded(varied(sized(3, (1, 2, 4, 8)), **{"env.NCCL_PROTO": "LL"}), found) is not None


def test_without_graphs_nothing_is_captured() -> None:
    found = learned([failed(sized(3, (1, 2, 4, 8)), OOM)])
    assert excluded(varied(sized(3, (64,)), disable_decode_cuda_graph=True), found) is None


def test_where_nothing_is_left_for_the_cache_less_is_what_fails() -> None:
    little = Failure(FailureClass.MEMORY, "nothing is left for the KV cache: Not enough memory", "")
    found = learned([failed(sized(3, (1, 2)), little)])
    assert excluded(sized(1, (1, 2), 0.7), found) is not None
    assert excluded(sized(3, (1, 2), 0.85), found) is None


@pytest.mark.parametrize("kind", [FailureClass.NCCL, FailureClass.HANG])
def test_a_value_of_an_nccl_variable_is_given_up_after_three_failures_and_no_success(kind: FailureClass) -> None:
    gone = Failure(kind, "communication between the GPUs failed", "")
    twice = [failed(chain(n, proto="LL"), gone, trial=n) for n in (2, 3)]
    assert learned(twice) == [], "what else they share may be the cause"
    thrice = [*twice, failed(baseline(proto="LL"), gone, trial=4)]
    (found,) = learned(thrice)
    assert found.holds(baseline(proto="LL"))
    assert not found.holds(chain(2))
    assert (found.words, found.trials) == ("NCCL_PROTO=LL failed in 3 of 3 launches", (2, 3, 4))
    assert learned([*thrice, record(5, chain(1, proto="LL"))]) == []


fractions = st.sampled_from([0.7, 0.8, 0.9])
batches = st.lists(st.sampled_from([1, 2, 4, 8, 16]), min_size=1, max_size=4, unique=True).map(sorted).map(tuple)
candidates = st.builds(sized, st.integers(1, 4), batches, fractions)


@given(candidates, candidates, candidates)
def test_what_a_failure_rules_out_rules_out_no_less_itself(a: Candidate, b: Candidate, c: Candidate) -> None:
    """Exclusion by memory is reflexive and transitive: an order, as memory is."""
    by_a, by_b = learned([failed(a, OOM)]), learned([failed(b, OOM)])
    assert excluded(a, by_a) is not None
    if excluded(b, by_a) is not None and excluded(c, by_b) is not None:
        assert excluded(c, by_a) is not None
