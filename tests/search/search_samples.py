"""A small space, an engine that is never started, and launches that could have been."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spectune.analysis.estimate import Estimate
from spectune.analysis.measurement import LevelMeasurement
from spectune.engines.protocol import LaunchCommand, Mismatch
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.interpreter import Interpreter
from spectune.search.storage.records import Seconds, Status, TrialRecord
from spectune.search.storage.steps import Role
from spectune.serving import Failure, FailureClass
from spectune.space import Candidate, SearchSpace, parse_space

SPACE = """
schema: 1
name: small
engine: {python: python3, gpus: 0, args: {model-path: org/model, device: cpu, attention-backend: intel_amx}}
search:
  speculative-algorithm: [none, EAGLE3]
  speculative-draft-model-path: [org/strong, org/weak]
  speculative-num-steps: {from: 1, to: 4}
  speculative-eagle-topk: [1, 2]
  speculative-num-draft-tokens: {from: 2, to: 8}
  env.NCCL_PROTO: [unset, LL]
forbid:
  - {speculative-eagle-topk: ">1", speculative-num-steps: ">3"}
workload: {prompts: builtin:tiny, levels: [{concurrency: 1}, {concurrency: 8}]}
objectives: [{maximize: decode_speed, level: c1}, {minimize: ttft_p95_ms, level: c8}]
constraints: [{ttft_p95_ms: {max: 500}, level: c8}]
budget: {trials: 12}
"""


def space(text: str = SPACE, **budget: float | None) -> SearchSpace:
    loaded = parse_space(text, Path("small.yaml"))
    return loaded.with_budget(loaded.budget.model_copy(update=budget)) if budget else loaded


def engine() -> SGLangEngine:
    fixed = {"model-path": "org/model", "device": "cpu", "attention-backend": "intel_amx"}
    return SGLangEngine(Interpreter(sys.executable), "0.5.23", fixed, {}, 0, 8)


def chain(steps: int, drafter: str = "org/strong", proto: str = "unset") -> Candidate:
    return Candidate.of(
        {
            "speculative-algorithm": "EAGLE3",
            "speculative-draft-model-path": drafter,
            "speculative-num-steps": steps,
            "speculative-eagle-topk": 1,
            "speculative-num-draft-tokens": steps + 1,
            "env.NCCL_PROTO": proto,
        }
    )


def baseline(proto: str = "unset") -> Candidate:
    return Candidate.of({"speculative-algorithm": "none", "env.NCCL_PROTO": proto})


def level(name: str, speed: float, accept: float = 1.0, ttft_ms: float = 100.0) -> LevelMeasurement:
    def near(value: float) -> Estimate:
        return Estimate(value, value * 0.99, value * 1.01)

    return LevelMeasurement(
        level=name, n_requests=40, failed=0, accept_length=near(accept),
        accept_length_by_class={"code": near(accept * 1.1), "prose": near(accept * 0.9)}, per_position=(0.7, 0.5),
        cycle_ms=near(1000 * accept / speed), inter_chunk_ms=1000 * accept / speed, decode_speed=near(speed),
        output_throughput=near(speed * 0.9), ttft_p50_ms=ttft_ms / 2, ttft_p95_ms=ttft_ms, itl_p50_ms=1.0,
        itl_p95_ms=2.0,
        prompt_tokens=50.0, output_tokens=100.0, cached_share=0.0, measured_s=6.0, client_cpu=0.1,
    )  # fmt: skip


def record(
    trial: int,
    candidate: Candidate,
    speed: float = 100.0,
    *,
    role: Role | None = None,
    accept: float = 1.0,
    ttft_ms: float = 100.0,
    total_s: float = 40.0,
    failure: FailureClass | None = None,
    suspect: Sequence[Mismatch] = (),
    place: str = "",
) -> TrialRecord:
    levels = (level("c1", speed, accept), level("c8", speed / 2, accept, ttft_ms))
    status = Status.FAILED if failure else Status.SUSPECT if suspect else Status.OK
    return TrialRecord(
        trial=trial,
        role=role or (Role.SEARCH if candidate.speculative else Role.BASELINE),
        candidate=candidate,
        launch_index=trial,
        why="to see",
        started_at="2026-01-01T00:00:00+00:00",
        status=status,
        seconds=Seconds(12.0, 20.0, 2.0, total_s),
        command=LaunchCommand(("python3", "-m", "sglang.launch_server"), {"A": "1"}, ("B",)),
        prompts_end=trial * 10,
        failure=Failure(failure, f"it was {failure}", "the log's words") if failure else None,
        suspect=tuple(suspect),
        levels=() if failure else levels,
        place=place,
    )


def rows(summary: Any, label: str) -> list[dict[str, Any]]:
    return [row for row in summary["candidates"] if row["label"] == label]
