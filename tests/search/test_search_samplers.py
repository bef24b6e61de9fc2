"""Samplers by name."""

from __future__ import annotations

import importlib.util

import pytest
from search_samples import baseline, engine, record, space

from spectune.errors import SpectuneError
from spectune.sampler_names import SAMPLERS, check_sampler
from spectune.search.proposing.proposals import Proposer

HAS_TORCH = importlib.util.find_spec("torch") is not None
HERE = [name for name in SAMPLERS if name != "gp" or HAS_TORCH]


@pytest.mark.parametrize("sampler", HERE)
def test_every_sampler_proposes_legal_candidates_that_are_new_and_says_why(sampler: str) -> None:
    at = space()
    proposer = Proposer(at, engine(), sampler=sampler)
    legal = set(proposer.all())
    records = [record(0, baseline())]
    for trial in range(1, 10):
        proposal = proposer.propose(records)
        assert proposal is not None
        assert proposal.candidate in legal
        assert proposal.candidate not in [r.candidate for r in records]
        assert proposal.why
        records.append(record(trial, proposal.candidate, 100.0 + trial))


@pytest.mark.parametrize("sampler", HERE)
def test_a_resumed_search_goes_on_as_the_uninterrupted_one(sampler: str) -> None:
    records = [record(0, baseline())]
    going = Proposer(space(), engine(), sampler=sampler)
    for trial in range(1, 7):
        proposal = going.propose(records)
        assert proposal is not None
        records.append(record(trial, proposal.candidate, 100.0 + trial))
    assert Proposer(space(), engine(), sampler=sampler).propose(records) == going.propose(records)


def test_an_unknown_sampler_is_told_the_nearest() -> None:
    with pytest.raises(SpectuneError, match="'guide' is not a sampler; did you mean 'guided'"):
        check_sampler("guide")


def test_gp_needs_its_group() -> None:
    if HAS_TORCH:
        check_sampler("gp")
        return
    with pytest.raises(SpectuneError, match=r"gp needs torch: .* `pip install 'torch>=2.4'`"):
        Proposer(space(), engine(), sampler="gp")


def test_only_the_guided_search_knows_when_to_stop() -> None:
    records = [record(0, baseline())]
    assert Proposer(space(), engine(), sampler="tpe").outlook(records) is None
    assert Proposer(space(), engine(), sampler="tpe").standing(records, baseline()) is None
    assert Proposer(space(), engine()).standing(records, baseline()) is not None
