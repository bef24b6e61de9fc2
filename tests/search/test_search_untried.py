"""What was never launched is no gain and no loss: settings inside CUDA graphs, and drafters."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from search_samples import SPACE, record, space

from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.interpreter import Interpreter
from spectune.search.answer.summary import summarise
from spectune.search.evidence.outcome import weigh
from spectune.search.evidence.untried import uncovered
from spectune.search.planning.plan import Stop, next_step
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.search.why import break_even_of
from spectune.serving import FailureClass
from spectune.space import Candidate, SearchSpace

SMALL, LARGE = (1, 2, 4), (1, 2, 4, 8)
"""Graph sizes; the levels are c1 and c8."""
ARGS = {"model-path": "org/model", "tp-size": 8, "attention-backend": "triton"}
GRAPHS = (
    SPACE.replace("gpus: 0", "gpus: 8")
    .replace("device: cpu, attention-backend: intel_amx", "tp-size: 8, attention-backend: triton")
    .replace("forbid:", "  cuda-graph-bs-decode: [[1, 2, 4], [1, 2, 4, 8]]\nforbid:")
    .replace(
        "{minimize: ttft_p95_ms, level: c8}]\nconstraints", "{maximize: output_throughput, level: c8}]\nconstraints"
    )
)


def plain(sizes: tuple[int, ...], proto: str = "unset") -> Candidate:
    values = {"speculative-algorithm": "none", "env.NCCL_PROTO": proto, "cuda-graph-bs-decode": sizes}
    return Candidate.of(values)


def drafting(sizes: tuple[int, ...], drafter: str = "org/strong") -> Candidate:
    return Candidate.of(
        {
            "speculative-algorithm": "EAGLE3", "speculative-draft-model-path": drafter, "speculative-num-steps": 4,
            "speculative-eagle-topk": 1, "speculative-num-draft-tokens": 5, "env.NCCL_PROTO": "unset",
            "cuda-graph-bs-decode": sizes,
        }
    )  # fmt: skip


def in_turns(one: TrialRecord, other: TrialRecord, *earlier: TrialRecord) -> list[TrialRecord]:
    """A study that confirmed one against the other."""
    last = max(r.trial for r in (one, other, *earlier))
    turns = [
        dataclasses.replace(r, trial=last + n, role=Role.CONFIRM) for n, r in enumerate((one, other, other, one), 1)
    ]
    return [*sorted((one, other, *earlier), key=lambda r: r.trial), *turns]


def told(records: list[TrialRecord], at: SearchSpace) -> dict[str, Any]:
    return summarise(records, at, Stop("the budget of launches is used up"), name="small", engine="e").to_json()


def proposer(at: SearchSpace) -> Proposer:
    return Proposer(at, SGLangEngine(Interpreter(sys.executable), "0.5.23", ARGS, {}, 8, 8), sampler="random")


def weak() -> TrialRecord:
    return record(2, drafting(LARGE, "org/weak"), 20.0, accept=1.2)


def test_a_gain_over_a_baseline_outside_graphs_is_none() -> None:
    at = space(GRAPHS)
    records = in_turns(record(0, plain(SMALL)), record(1, drafting(LARGE), 135.0, accept=2.0), weak())
    found = told(records, at)
    assert found["verdict"] == "undecided"
    assert found["recommended"]["candidate_id"] == plain(SMALL).candidate_id
    assert found["sentence"].startswith(
        "Undecided: without speculation c8 was measured outside CUDA graphs alone, though the space lists graphs that "
        "cover it, so a gain may be that of the graphs; the fastest is EAGLE3 strong 4,1,5"
    )
    remedy = found["to_decide"]
    assert "what was never launched comes next, no speculation · graphs 1-8: spectune " in remedy["words"]
    assert remedy["words"].endswith(f"--trials {len(records) + 5}")
    assert (remedy["pairs"], remedy["trials"]) == (None, len(records) + 5)
    assert remedy["words"] in found["details"]
    assert not found["ties"]
    assert weigh(records, at).chance is None
    at_level = {row["level"]: row["verdict"] for row in found["candidates"]
                if row["candidate_id"] == drafting(LARGE).candidate_id and row["class"] == "all"}  # fmt: skip
    assert at_level == {"c1": "pays", "c8": "unclear"}, "each level by its own graphs"
    even = break_even_of(records, at)
    assert "outside CUDA graphs alone" in even.words[0]
    assert not any("pays at every load" in line for line in even.words)
    assert {stratum.verdict for stratum in even.strata if stratum.level == "c8"} == {"unclear"}


def test_the_launch_that_is_missing_comes_before_anything_else() -> None:
    at = space(GRAPHS, trials=20)
    records = in_turns(record(0, plain(SMALL)), record(1, drafting(LARGE), 135.0, accept=2.0), weak())
    step = next_step(records, [], at, proposer(at))
    assert isinstance(step, Step)
    assert (step.role, step.candidate) == (Role.SEARCH, plain(LARGE))
    assert "a gain may be that of the graphs" in step.why
    slower, faster = (record(step.trial, step.candidate, speed, role=Role.SEARCH) for speed in (90.0, 150.0))
    assert told([*records, slower], at)["verdict"] == "speculation"
    assert told([*records, faster], at)["verdict"] != "speculation"


def test_a_loss_of_a_drafter_outside_graphs_is_none() -> None:
    at = space(GRAPHS)
    records = in_turns(record(0, plain(LARGE)), record(1, drafting(SMALL), 70.0, accept=2.0), weak())
    found = told(records, at)
    assert found["verdict"] == "undecided"
    assert "with strong c8 was measured outside CUDA graphs alone" in found["sentence"]
    assert "never launched comes next, EAGLE3 strong 4,1,5 · graphs 1-8" in found["to_decide"]["words"]


def test_what_was_tried_in_graphs_or_cannot_be_is_no_doubt() -> None:
    at, pays = space(GRAPHS), record(1, drafting(LARGE), 135.0, accept=2.0)
    slower = record(3, plain(LARGE, "LL"), 80.0, role=Role.SEARCH)
    assert told(in_turns(record(0, plain(SMALL)), pays, weak(), slower), at)["verdict"] == "speculation"
    died = record(3, plain(LARGE), role=Role.SEARCH, failure=FailureClass.MEMORY)
    assert told(in_turns(record(0, plain(SMALL)), pays, weak(), died), at)["verdict"] == "speculation"
    small = space(GRAPHS.replace("[[1, 2, 4], [1, 2, 4, 8]]", "[[1, 2, 4]]"))
    assert not uncovered([record(0, plain(SMALL)), pays], small)
    base = record(0, plain(SMALL))
    ran = dataclasses.replace(base, levels=tuple(dataclasses.replace(one, graph_used=True) for one in base.levels))
    assert not uncovered([ran, pays], at), "the engine's log is believed"
    own = record(3, plain(LARGE), role=Role.SEARCH, failure=FailureClass.PORT_IN_USE)
    assert uncovered([base, pays, own], at), "a port in use says nothing of graphs"


def test_drafters_begin_in_graphs_that_cover_every_level_and_doing_without_is_next_in_them() -> None:
    at = space(GRAPHS, trials=20)
    offers = proposer(at)
    assert offers.baseline() == plain(SMALL), "what the file begins with"
    assert list(offers.openings(offers.baseline())) == [drafting(LARGE), drafting(LARGE, "org/weak")]
    step = next_step([record(0, plain(SMALL))], [], at, offers)
    assert isinstance(step, Step)
    assert step.candidate == plain(LARGE)


def test_a_drafter_that_was_never_launched_is_named() -> None:
    at = space(GRAPHS)
    found = told([record(0, plain(LARGE)), record(1, drafting(LARGE), 60.0, accept=2.0)], at)
    assert "no candidate that was launched is as fast as the best launch without" in found["sentence"]
    (line,) = (line for line in found["details"] if line.startswith("never launched: "))
    assert line.startswith("never launched: org/weak; a larger budget launches it: ")
    assert line.endswith("--trials 8")
