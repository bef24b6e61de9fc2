"""The guided search on a small machine: it finds the best, survives failures, and knows when to stop."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from guided_world import TEXT, engine, launch, search, space, truth

from spectune.analysis.measurement import LevelMeasurement
from spectune.search.evidence.outcome import weigh
from spectune.search.evidence.ranking import incumbent
from spectune.search.guided.believing import believing
from spectune.search.guided.evidence import evidence_of
from spectune.search.guided.guide import Guide
from spectune.search.guided.sampler import GuidedSampler
from spectune.search.planning.plan import Stop, next_step
from spectune.search.proposing.optuna_draw import memory_study, suggested
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.serving import FailureClass
from spectune.space import Candidate, SearchSpace

SPACE = space()
EVERY = list(Proposer(SPACE, engine(SPACE)).all())
BEST = max(map(truth, EVERY))


def recommended(records: list[TrialRecord], at: SearchSpace = SPACE) -> Candidate:
    found = incumbent(records, at, Proposer(at, engine(at)).standing)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(4))
def test_it_finds_what_is_within_two_percent_of_the_best_in_a_dozen_launches(seed: int) -> None:
    assert len(EVERY) > 900
    records = list(search(SPACE, 12, seed))
    assert truth(recommended(records)) > BEST + math.log(0.98)


def test_a_region_that_fails_is_left_after_few_launches() -> None:
    def fails(candidate: Candidate) -> FailureClass | None:
        return FailureClass.NCCL if candidate.values["env.NCCL_PROTO"] == "LL" and candidate.speculative else None

    records = list(search(SPACE, 14, fails=fails))
    assert sum(record.failure is not None for record in records) <= 3
    runs = [truth(c) for c in EVERY if fails(c) is None]
    assert truth(recommended(records)) > max(runs) + math.log(0.98)


def test_memory_that_was_not_enough_is_never_asked_for_again() -> None:
    def demand(candidate: Candidate) -> int:
        return sum(candidate.values["cuda-graph-bs-decode"]) * (candidate.num_draft_tokens or 1)  # type: ignore[arg-type]

    def fails(candidate: Candidate) -> FailureClass | None:
        return FailureClass.MEMORY if demand(candidate) > 190 else None

    records = search(SPACE, 14, fails=fails)
    smallest = math.inf
    for record in records:
        assert demand(record.candidate) < smallest
        if record.failure is not None:
            smallest = min(smallest, demand(record.candidate))


def test_everything_that_speculates_fails() -> None:
    records = list(search(SPACE, 10, fails=lambda c: FailureClass.DRAFTER if c.speculative else None))
    assert len({record.candidate for record in records}) == len(records)
    assert not recommended(records).speculative


def test_no_launch_measured_anything() -> None:
    records = list(search(SPACE, 8, fails=lambda _: FailureClass.CRASH))
    assert len({record.candidate for record in records}) == 8


def test_a_drafter_without_counters_is_searched_by_its_speed() -> None:
    proposer = Proposer(SPACE, engine(SPACE))
    records = [launch(0, proposer.baseline())]
    for trial in range(1, 16):
        proposal = proposer.propose(records)
        assert proposal is not None
        records.append(launch(trial, proposal.candidate, counters=False))
    assert truth(recommended(records)) > truth(proposer.baseline()) + 0.3


def test_contradictory_launches_of_one_candidate_are_averaged() -> None:
    records = list(search(SPACE, 6))
    twin = records[-1].candidate
    guide = Guide(SPACE, engine(SPACE))
    once = guide.standing(evidence_of(records, SPACE), twin)
    again = [*records, *(launch(90 + n, twin, seed=n) for n in range(3))]
    often = guide.standing(evidence_of(again, SPACE), twin)
    failed = guide.standing(evidence_of([*again, launch(99, twin, fails=lambda _: FailureClass.HANG)], SPACE), twin)
    assert once is not None
    assert often is not None
    assert failed == pytest.approx(often, abs=0.02)
    assert often == pytest.approx(sum(math.log(1000) + truth(twin) for _ in (0,)) + math.log(8) / 2, abs=0.03)


def test_the_same_evidence_gives_the_same_advice_whatever_was_asked_before() -> None:
    records = list(search(SPACE, 9))
    fresh = Proposer(SPACE, engine(SPACE)).propose(records[:7])
    used = Proposer(SPACE, engine(SPACE))
    for seen in (3, 9, 5, 7):
        last = used.propose(records[:seen])
    assert last == fresh


def test_a_long_study_is_gone_on_with_as_if_it_had_never_paused() -> None:
    records = list(search(SPACE, 47))
    lasting, resumed = (Proposer(SPACE, engine(SPACE)) for _ in range(2))
    for seen in (41, 43, 44, 45, 47):
        lasting.outlook(records[:seen])
        last = lasting.propose(records[:seen])
    assert resumed.propose(records) == last
    assert resumed.outlook(records) == lasting.outlook(records)


def test_as_an_optuna_sampler_it_proposes_the_same() -> None:
    records = list(search(SPACE, 9))
    guide = Guide(SPACE, engine(SPACE))
    drawn = suggested(memory_study(records, SPACE, GuidedSampler(guide)).ask(), SPACE)
    proposed = Proposer(SPACE, engine(SPACE)).propose(records)
    assert proposed is not None
    assert proposed.candidate == Proposer(SPACE, engine(SPACE)).legal(drawn)


def test_a_space_with_one_candidate_besides_the_baseline() -> None:
    text = TEXT
    for old, new in (
        ("[org/strong, org/weak]", "org/strong"), ("{from: 1, to: 6}", "3"), ("[1, 2, 4]\n", "1\n"),
        ("{from: 2, to: 16}", "4"), ("[[1, 2, 4], [1, 2, 4, 8, 16]]", "[[1, 2, 4, 8, 16]]"), ("[unset, LL]", "unset"),
    ):  # fmt: skip
        text = text.replace(old, new)
    at = space(text)
    assert len(list(Proposer(at, engine(at)).all())) == 2
    assert len(search(at, 9)) == 2


def test_the_search_stops_when_nothing_better_is_likely_and_says_how_sure_it_is() -> None:
    proposer = Proposer(SPACE, engine(SPACE))
    at = SPACE.with_budget(SPACE.budget.model_copy(update={"trials": 60}))
    records: list[TrialRecord] = []
    while isinstance(step := next_step(records, [], at, proposer), Step):
        made = launch(len(records), step.candidate)
        records.append(TrialRecord(**{**vars(made), "role": step.role}))
    assert isinstance(step, Stop)
    assert "that no untried candidate is better by more than 1% than the best of the finalists" in step.reason
    assert step.figure is not None
    assert step.figure <= 0.05
    assert len(records) < 60
    answer = weigh(records, at).recommended
    assert answer in {record.candidate for record in records if record.role is Role.CONFIRM}
    assert truth(answer) > BEST + math.log(0.98)


def test_open_loops_are_searched_without_a_model_of_their_cycles() -> None:
    at = space(
        TEXT.replace("{concurrency: 8}]", "{rate: 2.0}]").replace(
            "output_throughput, level: c8", "decode_speed, level: r2"
        )
    )
    proposer = Proposer(at, engine(at))
    records = [launch(0, proposer.baseline())]
    records = [replace(record, levels=_renamed(record, at)) for record in records]
    for trial in range(1, 9):
        proposal = proposer.propose(records)
        assert proposal is not None
        made = launch(trial, proposal.candidate)
        records.append(replace(made, levels=_renamed(made, at)))
    assert len({record.candidate for record in records}) == 9
    assert truth(recommended(records, at)) > truth(proposer.baseline())


def _renamed(record: TrialRecord, at: SearchSpace) -> tuple[LevelMeasurement, ...]:
    names = at.workload.level_names
    return tuple(replace(level, level=name) for level, name in zip(record.levels, names, strict=True))


def test_a_launch_that_runs_is_believed_to_measure_what_is_expected() -> None:
    evidence = evidence_of(list(search(SPACE, 8)), SPACE)
    guide = Guide(SPACE, engine(SPACE))
    beliefs = guide.beliefs.openly(evidence)
    table = guide.chart.table
    number = int(np.argmax(beliefs.score))
    believed = believing(beliefs, np.array([number]))
    assert believed.score == pytest.approx(beliefs.score)
    some = np.arange(0, table.size, 7)
    before, after = beliefs.deviations(some), believed.deviations(some)
    assert (after <= before + 1e-9).all()
    own = beliefs.deviations(np.array([number]))[0], believed.deviations(np.array([number]))[0]
    noise = beliefs.residual.noise
    assert own[1] == pytest.approx(own[0] * noise / math.hypot(own[0], noise), rel=1e-6)
    process = believed.residual
    codes, features = (
        guide.chart.codes_at(np.array([number])),
        beliefs.features[guide.chart.settings_at(np.array([number]))],
    )
    kernel = process.posterior(codes, features)
    assert kernel.shape == (1, 1)
    assert kernel[0, 0] == pytest.approx(own[1] ** 2, rel=1e-6)


def test_places_that_ask_at_once_are_given_different_launches() -> None:
    records = list(search(SPACE, 10))
    proposer = Proposer(SPACE, engine(SPACE))
    running: list[Step] = []
    for place in range(4):
        proposal = proposer.propose(records, running)
        assert proposal is not None
        running.append(Step(10 + place, Role.SEARCH, proposal.candidate, proposal.why, f"m{place}"))
    assert len({step.candidate for step in running}) == 4
    assert proposer.propose(records) == Proposer(SPACE, engine(SPACE)).propose(records)  # nothing of it is remembered
