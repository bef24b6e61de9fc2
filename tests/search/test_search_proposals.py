"""Legal, canonical, not forbidden, new."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_samples import SPACE, baseline, chain, engine, record, space

from spectune.errors import SpectuneError
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.values import decode, encode
from spectune.serving import FailureClass
from spectune.space import Candidate, Parameter

PROPOSER = Proposer(space(), engine())
EVERY = list(PROPOSER.all())


def by_hand() -> set[str]:
    """Every candidate of the sample space, from its text alone."""
    found = {baseline(proto).candidate_id for proto in ("unset", "LL")}
    for drafter, steps, topk, proto in itertools.product(
        ("org/strong", "org/weak"), range(1, 5), (1, 2), ("unset", "LL")
    ):
        tokens = [steps + 1] if topk == 1 else range(steps + 1, min(8, 1 + topk + (steps - 1) * topk**2) + 1)
        if topk > 1 and steps > 3:
            continue
        for n in tokens:
            values = {
                "speculative-algorithm": "EAGLE3", "speculative-draft-model-path": drafter,
                "speculative-num-steps": steps, "speculative-eagle-topk": topk,
                "speculative-num-draft-tokens": n, "env.NCCL_PROTO": proto,
            }  # fmt: skip
            found.add(Candidate.of(values).candidate_id)
    return found


def test_all_is_exactly_what_is_legal_and_not_forbidden() -> None:
    ids = [candidate.candidate_id for candidate in EVERY]
    assert len(set(ids)) == len(ids)
    assert set(ids) == by_hand()


@settings(max_examples=15, deadline=None)
@given(st.sets(st.integers(0, len(EVERY) - 1), max_size=len(EVERY) - 1), st.integers(0, 3))
def test_a_proposal_is_legal_and_new(launched: set[int], seed: int) -> None:
    records = [record(n, EVERY[i], 100.0 + i) for n, i in enumerate(sorted(launched))]
    proposal = Proposer(space(), engine(), seed=seed).propose(records)
    assert proposal is not None
    assert proposal.candidate.candidate_id in by_hand()
    assert proposal.candidate not in [r.candidate for r in records]
    assert proposal.why


def test_an_exhausted_space_proposes_nothing() -> None:
    assert PROPOSER.propose([record(n, candidate) for n, candidate in enumerate(EVERY)]) is None


def test_the_same_records_give_the_same_proposal() -> None:
    records = [record(n, candidate, 100.0 + n) for n, candidate in enumerate(EVERY[::9])]
    assert PROPOSER.propose(records) == Proposer(space(), engine()).propose(records)


def test_it_learns_from_failures_without_stumbling_over_them() -> None:
    records = [record(0, baseline())]
    records += [record(n + 1, c, failure=FailureClass.MEMORY) for n, c in enumerate(EVERY[5::7])]
    assert PROPOSER.propose(records) is not None


def test_baseline_is_the_first_legal_one() -> None:
    assert PROPOSER.baseline() == baseline()


def test_a_space_without_a_legal_baseline_says_so() -> None:
    text = (
        "schema: 1\nname: x\nengine: {python: python3, gpus: 0, args: {model-path: m}}\n"
        "search: {page-size: [3], chunked-prefill-size: [100]}\n"
    )
    with pytest.raises(SpectuneError, match=r"no legal candidate without speculation .* multiple of 3 \(R15"):
        Proposer(space(text), engine()).baseline()


scalars = st.lists(st.one_of(st.integers(), st.booleans(), st.text(max_size=4)), min_size=1, max_size=5)
lists = st.lists(st.lists(st.integers(), min_size=1, max_size=3).map(tuple), min_size=1, max_size=5)


@given(st.one_of(scalars, lists))
def test_values_survive_optunas_storage(values: list[object]) -> None:
    distinct = []
    for value in values:
        if not any(type(value) is type(other) and encode(value) == encode(other) for other in distinct):
            distinct.append(value)
    parameter = Parameter("x", tuple(distinct))
    for value in distinct:
        back = decode(parameter, encode(value))
        assert (type(back), back) == (type(value), value)


def test_chains_of_the_sample_are_in_the_space() -> None:
    assert {chain(3), chain(3, "org/weak")} <= set(EVERY)


def test_a_moved_draft_token_count_has_to_be_one_of_the_file() -> None:
    at = space(SPACE.replace("{from: 2, to: 8}", "[3, 8]"))
    proposer = Proposer(at, engine(), sampler="random")
    tree = {**dict(chain(3).items), "speculative-eagle-topk": 2}
    assert proposer.legal({**tree, "speculative-num-draft-tokens": 8}) is not None
    assert proposer.legal({**tree, "speculative-num-draft-tokens": 3}) is None  # 4 at least, and the file has no 4
    moved = proposer.legal(dict(chain(3).items))
    assert moved is not None
    assert moved.num_draft_tokens == 4  # a chain always has S + 1
    listed = {candidate.candidate_id for candidate in proposer.all()}
    for seen in range(12):
        proposal = proposer.propose([record(0, baseline()), *(record(n + 1, chain(1)) for n in range(seen))])
        assert proposal is not None
        assert proposal.candidate.candidate_id in listed


def test_the_first_speculation_has_the_settings_of_the_first_baseline_that_ran() -> None:
    failed = record(0, baseline("unset"), failure=FailureClass.UNSUPPORTED)
    ran = record(1, baseline("LL"))
    first = PROPOSER.propose([failed, ran])
    assert first is not None
    assert (first.candidate.speculative, first.candidate.values["env.NCCL_PROTO"]) == (True, "LL")
    died = record(2, first.candidate, failure=FailureClass.CRASH)
    second = PROPOSER.propose([failed, ran, died])
    assert second is not None
    assert second.candidate.values["speculative-draft-model-path"] == "org/weak", "not again"


def test_a_drafter_that_ran_has_had_its_first_launch() -> None:
    heard = [record(0, baseline("unset")), record(1, chain(2), 120.0)]
    proposal = PROPOSER.propose(heard)
    assert proposal is not None
    assert proposal.candidate.values["speculative-draft-model-path"] == "org/weak"
