"""Studies to report on: a lively one, and what is left when little or nothing worked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from spectune.analysis.measurement import LevelMeasurement
from spectune.engines.protocol import LaunchCommand, Mismatch
from spectune.search import Stop, Summary, summarise
from spectune.search.storage.records import Seconds, Status, TrialRecord
from spectune.search.storage.steps import Role
from spectune.serving import Failure, FailureClass
from spectune.space import Candidate, SearchSpace, parse_space

ENVIRONMENT = {
    "schema": 1,
    "engine": "SGLang 0.5.23",
    "cpu": "EPYC",
    "cores": 2,
    "libraries": {"optuna": "5.0"},
    "gpus": 0,
}
SPACE = """
schema: 1
name: sample
engine: {kind: sglang, gpus: 8, args: {model-path: /models/target}}
search:
  speculative-algorithm: [none, EAGLE3]
  speculative-draft-model-path: ["runtime:drafter-strong", "runtime:drafter-weak"]
  speculative-num-steps: {from: 1, to: 7}
  speculative-eagle-topk: [1]
  speculative-num-draft-tokens: {from: 2, to: 8}
  page-size: [1, 16]
forbid: [{speculative-num-steps: ">5", page-size: 16}]
workload: {prompts: builtin:tiny, output_tokens: 128, levels: [{concurrency: 1}, {concurrency: 8}]}
objectives: [{maximize: decode_speed, level: c1}, {maximize: output_throughput, level: c8}]
targets: {decode_speed: [500, 900]}
budget: {trials: 12}
"""
ENGINE = "SGLang 0.5.23 on the CPU reference runtime"
LOG = """Traceback (most recent call last):
  File "eagle.py", line 3
RuntimeError: selected index k out of range"""
LEVELS = {"c1": 1.0, "c8": 5.0}


def space(**changes: str) -> SearchSpace:
    """The sample space with lines of it replaced: `targets="{decode_speed: [120]}"`."""
    lines = SPACE.splitlines()
    for key, value in changes.items():
        lines = [f"{key}: {value}" if line.startswith(f"{key}:") else line for line in lines]
    return parse_space("\n".join(lines), Path("space.yaml"))


def triple(value: float, share: float = 0.02) -> list[float]:
    return [value, value * (1 - share), value * (1 + share)]


def candidate(steps: int, drafter: str = "runtime:drafter-strong", **more: Any) -> Candidate:
    if steps == 0:
        return Candidate.of({"speculative-algorithm": "none", **more})
    values = {
        "speculative-algorithm": "EAGLE3",
        "speculative-draft-model-path": drafter,
        "speculative-num-steps": steps,
        "speculative-eagle-topk": 1,
        "speculative-num-draft-tokens": steps + 1,
    }
    return Candidate.of({**values, **more})


def measurement(level: str, speed: float, accepted: float, steps: int, notes: tuple[str, ...] = ()) -> LevelMeasurement:
    data = {
        "level": level, "n_requests": 40, "failed": 0, "accept_length": triple(accepted),
        "accept_length_by_class": {"code": triple(accepted * 1.1), "prose": triple(accepted * 0.9)} if steps else {},
        "requests_by_class": {"code": 20, "prose": 20},
        "per_position": [((accepted - 1) / steps) ** (0.5 * i) for i in range(1, steps + 1)] if steps else [],
        "cycle_ms": triple(1000 * accepted / speed), "inter_chunk_ms": 1000 * accepted / speed,
        "decode_speed": triple(speed), "output_throughput": triple(speed * LEVELS[level]),
        "ttft_p50_ms": 30.0, "ttft_p95_ms": 40.0, "itl_p50_ms": 3.0, "itl_p95_ms": 4.0, "prompt_tokens": 60.0,
        "output_tokens": 250.0, "cached_share": 0.0, "measured_s": 8.0, "client_cpu": 0.1, "graph_used": True,
        "notes": list(notes),
    }  # fmt: skip
    return LevelMeasurement.from_json(data)


def record(
    trial: int, of: Candidate, speeds: tuple[float, float] | None = None, accepted: float = 1.0, **fields: Any
) -> TrialRecord:
    argv = (
        "python3",
        "-m",
        "sglang.launch_server",
        "--model-path",
        "/models/target",
        "--port",
        "31007",
        "--nccl-port",
        "29501",
    )
    given: dict[str, Any] = {
        "trial": trial,
        "role": Role.SEARCH if of.speculative else Role.BASELINE,
        "candidate": of,
        "launch_index": trial,
        "why": "first look",
        "started_at": "2026-03-01T10:00:00+00:00",
        "status": Status.OK,
        "seconds": Seconds(startup=12.0, measuring=20.0, shutdown=1.0, total=33.5),
        "command": LaunchCommand(argv, {"NCCL_ALGO": "allreduce:ring", "HF_TOKEN": "hf-very-secret"}, ("NCCL_PROTO",)),
    }
    if speeds:
        pairs = zip(LEVELS, speeds, strict=True)
        given["levels"] = tuple(measurement(level, speed, accepted, of.num_steps or 0) for level, speed in pairs)
    return TrialRecord(**{**given, **fields})


def failed(trial: int, of: Candidate, excerpt: str = "RuntimeError: selected index k out of range") -> TrialRecord:
    failure = Failure(FailureClass.UNSUPPORTED, f"the draft tree is too small: {excerpt.splitlines()[-1]}", excerpt)
    return record(trial, of, status=Status.FAILED, failure=failure)


def summary(records: list[TrialRecord], space_: SearchSpace | None = None, **changes: Any) -> Summary:
    """What a search of the sample space sums these records up to."""
    stop = Stop("the budget of 12 launches is used up", 12.0)
    return replace(summarise(records, space_ or space(), stop, name="sample", engine=ENGINE), **changes)


def lively() -> list[TrialRecord]:
    """Baselines, winners, losers, a failure and a suspect launch."""
    weak = "runtime:drafter-weak"
    return [
        record(0, candidate(0), (442.0, 261.0)),
        record(1, candidate(0, **{"page-size": 16}), (431.0, 268.0)),
        record(2, candidate(3), (733.0, 334.0), 3.39),
        record(3, candidate(1), (601.0, 352.0), 1.92),
        record(4, candidate(6), (698.0, 287.0), 4.58),
        record(5, candidate(3, weak), (376.0, 190.0), 1.97),
        record(6, candidate(1, weak), (513.0, 258.0), 1.61),
        failed(7, candidate(2), LOG),
        record(
            8, candidate(5), (690.0, 290.0), 4.1, status=Status.SUSPECT,
            suspect=(Mismatch("speculative-num-steps", 5, 3),), role=Role.CONFIRM,
        ),
    ]  # fmt: skip
