"""A small machine whose best candidate is known, and launches of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from spectune.analysis.estimate import Estimate
from spectune.analysis.measurement import LevelMeasurement
from spectune.engines.protocol import LaunchCommand
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.interpreter import Interpreter
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import Seconds, Status, TrialRecord
from spectune.search.storage.steps import Role
from spectune.serving import Failure, FailureClass
from spectune.space import Candidate, SearchSpace, parse_space

TEXT = """
schema: 1
name: world
engine: {python: python3, gpus: 1, args: {model-path: org/model, max-running-requests: 16}}
search:
  speculative-algorithm: [none, EAGLE3]
  speculative-draft-model-path: [org/strong, org/weak]
  speculative-num-steps: {from: 1, to: 6}
  speculative-eagle-topk: [1, 2, 4]
  speculative-num-draft-tokens: {from: 2, to: 16}
  cuda-graph-bs-decode: [[1, 2, 4], [1, 2, 4, 8, 16]]
  env.NCCL_PROTO: [unset, LL]
workload: {prompts: builtin:tiny, levels: [{concurrency: 1}, {concurrency: 8}]}
objectives: [{maximize: decode_speed, level: c1}, {maximize: output_throughput, level: c8}]
budget: {trials: 30}
"""
SHAPES = {"org/strong": (0.82, 0.78, 0.75, 0.7, 0.66, 0.62), "org/weak": (0.5, 0.4, 0.35, 0.3, 0.3, 0.3)}
NOISE = 0.01
Fails = Callable[[Candidate], FailureClass | None]


def space(text: str = TEXT) -> SearchSpace:
    from pathlib import Path

    return parse_space(text, Path("world.yaml"))


def engine(at: SearchSpace) -> SGLangEngine:
    from sys import executable

    return SGLangEngine(Interpreter(executable), "0.5.23", at.engine.args, {}, 1, 8)


def never(_: Candidate) -> FailureClass | None:
    return None


def survival(candidate: Candidate) -> tuple[float, ...]:
    """Chains by shape; breadth closes a part of the gap, another law than the model's."""
    if not candidate.speculative:
        return ()
    topk, tokens, steps = candidate.eagle_topk or 1, candidate.num_draft_tokens or 2, candidate.num_steps or 1
    alive, found = 1.0, []
    for a in SHAPES[candidate.drafter or ""][:steps]:
        share = min(1.0, (tokens - 1) / (steps * min(topk, 3)))
        alive *= a if topk == 1 else a + (1 - a) * 0.35 * (1 - topk**-0.7) * share
        found.append(alive)
    return tuple(found)


def cycle_ms(candidate: Candidate, concurrency: int) -> float:
    captured = max(candidate.values["cuda-graph-bs-decode"])  # type: ignore[type-var]
    eager = concurrency > captured
    tokens = concurrency * (candidate.num_draft_tokens or 1)
    work = 10.0 * (1.8 if eager else 1.0) + 0.06 * tokens**1.1
    draft = (candidate.num_steps or 0) * 0.6 if candidate.speculative else 0.0
    return (work + draft) * (0.96 if candidate.values["env.NCCL_PROTO"] == "LL" else 1.0)


def truth(candidate: Candidate) -> float:
    """Mean log of the objectives."""
    length = 1.0 + sum(survival(candidate))
    return sum(math.log(length / cycle_ms(candidate, at)) for at in (1, 8)) / 2


def launch(
    trial: int, candidate: Candidate, seed: int = 0, fails: Fails = never, *, counters: bool = True
) -> TrialRecord:
    rng = np.random.default_rng([seed, trial])
    factor = math.exp(NOISE * rng.standard_normal())
    failure = fails(candidate)
    levels = tuple(_level(candidate, at, factor, counters) for at in (1, 8))
    return TrialRecord(
        trial=trial, role=Role.SEARCH if candidate.speculative else Role.BASELINE, candidate=candidate,
        launch_index=trial, why="", started_at="", status=Status.FAILED if failure else Status.OK,
        seconds=Seconds(10.0, 20.0, 1.0, 32.0), command=LaunchCommand(()),
        failure=Failure(failure, f"it was {failure}", "") if failure else None, levels=() if failure else levels,
    )  # fmt: skip


def _level(candidate: Candidate, concurrency: int, factor: float, counters: bool) -> LevelMeasurement:
    found = survival(candidate)
    cycle = cycle_ms(candidate, concurrency) * factor
    speed = 1000.0 * (1.0 + sum(found)) / cycle
    length = 1.0 + sum(found) if counters else 1.0

    def near(value: float) -> Estimate:
        return Estimate(value, value * 0.99, value * 1.01)

    return LevelMeasurement(
        level=f"c{concurrency}", n_requests=40, failed=0, accept_length=near(length), accept_length_by_class={},
        per_position=found if counters else (), cycle_ms=near(1000.0 * length / speed), inter_chunk_ms=cycle,
        decode_speed=near(speed), output_throughput=near(speed * concurrency), ttft_p50_ms=50.0, ttft_p95_ms=90.0,
        itl_p50_ms=1.0, itl_p95_ms=2.0, prompt_tokens=50.0, output_tokens=100.0, cached_share=0.0, measured_s=6.0,
        client_cpu=0.1,
    )  # fmt: skip


def search(at: SearchSpace, launches: int, seed: int = 0, fails: Fails = never) -> Sequence[TrialRecord]:
    """Launch the baseline, then what is proposed, until nothing is."""
    proposer = Proposer(at, engine(at), seed=seed)
    records = [launch(0, proposer.baseline(), seed, fails)]
    for trial in count(1):
        proposal = proposer.propose(records)
        if trial == launches or proposal is None:
            break
        assert proposal.why
        records.append(launch(trial, proposal.candidate, seed, fails))
    return records
