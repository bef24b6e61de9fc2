"""What an earlier study is worth to a new one: much where it fits, little harm where it does not, never a launch."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from guided_world import TEXT, engine, launch, search, space, truth

from spectune.search.evidence.ranking import incumbent
from spectune.search.guided.evidence import Discount, Evidence, borrowed_from, evidence_of
from spectune.search.guided.guide import Guide
from spectune.search.guided.landscape import chances
from spectune.search.proposing.proposals import Proposer
from spectune.search.proposing.warm_start import SAME, WarmStart
from spectune.search.storage.records import TrialRecord
from spectune.serving import FailureClass
from spectune.space import Candidate, SearchSpace

SPACE = space()
BEST = max(truth(candidate) for candidate in Proposer(SPACE, engine(SPACE)).all())


def lent(records: list[TrialRecord], discount: Discount = SAME, *, same_machine: bool = True) -> WarmStart:
    found = [borrowed_from(r, SPACE, SPACE, discount, same_machine=same_machine) for r in records]
    return WarmStart("before", "for a test", tuple(item for item in found if item is not None))


def launches_to_two_percent(seed: int, warm_start: WarmStart | None, at: SearchSpace = SPACE) -> int:
    proposer = Proposer(at, engine(at), seed=seed, warm_start=warm_start)
    records = [launch(0, proposer.baseline(), seed)]
    while len(records) < 20:
        found = incumbent(records, at, proposer.standing)
        if found is not None and truth(found) >= BEST + math.log(0.98):
            return len(records)
        proposal = proposer.propose(records)
        assert proposal is not None
        records.append(launch(len(records), proposal.candidate, seed))
    return len(records)


def elsewhere(records: list[TrialRecord]) -> list[TrialRecord]:
    """The same launches on a machine where drafters are right the other way round and depth costs nothing."""
    turned = []
    for record in records:
        speculative = record.candidate.speculative
        steps, tokens = record.candidate.num_steps or 0, record.candidate.num_draft_tokens or 1
        factor = (0.6 + 0.3 * steps - 0.02 * tokens) / (1.6 if record.candidate.drafter == "org/strong" else 0.6)
        scale = max(0.2, factor) if speculative else 1.0
        levels = tuple(
            replace(
                level, decode_speed=level.decode_speed.scaled(scale), cycle_ms=level.cycle_ms.scaled(1 / scale),
                output_throughput=level.output_throughput.scaled(scale),
            )
            for level in record.levels
        )  # fmt: skip
        turned.append(replace(record, levels=levels))
    return turned


@pytest.fixture(scope="module")
def before() -> list[TrialRecord]:
    return list(search(SPACE, 14, seed=7))


def test_a_warm_start_on_the_same_machine_needs_fewer_launches(before: list[TrialRecord]) -> None:
    cold = [launches_to_two_percent(seed, None) for seed in range(2)]
    warm = [launches_to_two_percent(seed, lent(before)) for seed in range(2)]
    assert all(one < other for one, other in zip(warm, cold, strict=True))
    assert np.median(warm) <= 3


def test_a_misleading_one_costs_a_few_launches_at_most(before: list[TrialRecord]) -> None:
    cold = [launches_to_two_percent(seed, None) for seed in range(2)]
    misled = [launches_to_two_percent(seed, lent(elsewhere(before))) for seed in range(2)]
    assert all(one <= other + 4 for one, other in zip(misled, cold, strict=True))


def test_it_is_dropped_when_it_misleads_and_kept_when_it_helps(before: list[TrialRecord]) -> None:
    own = evidence_of(list(search(SPACE, 5)), SPACE)
    for records, kept in ((before, True), (elsewhere(before), False)):
        guide = Guide(SPACE, engine(SPACE), borrowed=lent(records).evidence, lender="before")
        assert bool(guide.beliefs.lent(own)) is kept
        assert guide.beliefs.lent(own[:1])  # the baseline alone says nothing against it


def test_its_launches_are_no_launches_of_this_study(before: list[TrialRecord]) -> None:
    proposer = Proposer(SPACE, engine(SPACE), warm_start=lent(before))
    first = launch(0, proposer.baseline())
    proposal = proposer.propose([first])
    assert proposal is not None
    assert proposal.candidate.speculative  # whatever the earlier study says, this one looks for itself
    assert proposal.why.endswith(", as study before suggests")
    assert proposer.outlook([]) is None
    best = max(before, key=lambda record: truth(record.candidate)).candidate
    records = [first, launch(1, best)]
    cold = Proposer(SPACE, engine(SPACE))
    assert proposer.standing(records, best) == cold.standing(records, best)


def test_another_machine_teaches_acceptance_alone(before: list[TrialRecord]) -> None:
    evidence = lent(before, same_machine=False).evidence
    assert all(item.targets is None for item in evidence)
    assert all(level.concurrency is None for item in evidence for level in item.levels)
    guide = Guide(SPACE, engine(SPACE), borrowed=evidence, lender="before")
    own = evidence_of([launch(0, Proposer(SPACE, engine(SPACE)).baseline())], SPACE)
    beliefs, alone = guide.beliefs.openly(own), Guide(SPACE, engine(SPACE)).beliefs.openly(own)
    assert beliefs.physics is not None
    assert alone.physics is not None
    known, guessed = (one.physics.acceptance for one in (beliefs, alone) if one.physics is not None)
    assert known.conditionals["EAGLE3 org/strong"][0] == pytest.approx(0.82, abs=0.05)
    assert "EAGLE3 org/strong" not in guessed.conditionals


def test_failures_of_another_version_warn_and_those_of_the_same_rule_out() -> None:
    at, chart = SPACE, Guide(SPACE, engine(SPACE)).chart
    plain, failing = (next(c for c in Proposer(at, engine(at)).all() if c.speculative is s) for s in (False, True))
    number = chart.table.number(failing)
    assert number is not None
    for risk, least, most in ((1.0, 0.0, 0.02), (0.5, 0.4, 0.6)):
        dead = Evidence(failing, None, failure=FailureClass.CRASH, discount=Discount(1.0, 1.0, risk))
        ran = Evidence(plain, (1.0, 1.0), discount=Discount(1.0, 1.0, risk))
        assert least <= chances(chart, [dead, ran])[number] <= most


def test_what_was_fixed_there_may_be_searched_here() -> None:
    there = space(TEXT.replace("max-running-requests: 16", "max-running-requests: 16, page-size: 16"))
    here = space(TEXT.replace("env.NCCL_PROTO", "page-size: [1, 16]\n  env.NCCL_PROTO"))
    record = launch(0, Proposer(there, engine(there)).baseline())
    found = borrowed_from(record, there, here, SAME, same_machine=True)
    assert found is not None
    assert found.candidate.values["page-size"] == 16
    assert isinstance(found.candidate, Candidate)


def test_it_is_kept_as_it_was_read(before: list[TrialRecord]) -> None:
    evidence = lent(before).evidence
    assert [Evidence.loads(item.dumps()) for item in evidence] == list(evidence)
