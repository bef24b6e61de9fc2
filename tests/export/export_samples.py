"""Finished launches to export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spectune.analysis.measurement import LevelMeasurement
from spectune.engines.protocol import LaunchCommand
from spectune.search.storage.records import Seconds, Status, TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import Candidate

SPECULATIVE = {
    "speculative-algorithm": "EAGLE3",
    "speculative-draft-model-path": "runtime:drafter-strong",
    "speculative-num-steps": 3,
    "speculative-eagle-topk": 1,
    "speculative-num-draft-tokens": 4,
}
ARGV = (
    "python3", "-m", "sglang.launch_server", "--model-path", "/models/target", "--cuda-graph-bs-decode", "1", "2", "4",
    "--host", "127.0.0.1", "--nccl-port", "29501", "--port", "31007", "--skip-tokenizer-init",
    "--speculative-algorithm", "EAGLE3", "--speculative-num-steps", "3",
)  # fmt: skip


def level(name: str, **figures: Any) -> dict[str, Any]:
    """A measured level as `result.json` holds it."""
    return {
        "level": name,
        "n_requests": 40,
        "failed": 0,
        "accept_length": [2.47, 2.41, 2.53],
        "accept_length_by_class": {"prose": [2.2, 2.1, 2.3], "code": [2.7, 2.6, 2.8]},
        "per_position": [0.71, 0.47, 0.29],
        "cycle_ms": [30.1, 29.8, 30.4],
        "inter_chunk_ms": 30.2,
        "decode_speed": [82.3, 81.9, 82.7],
        "output_throughput": [80.0, None, None],
        "ttft_p50_ms": 35.0,
        "ttft_p95_ms": 41.5,
        "itl_p50_ms": 29.9,
        "itl_p95_ms": 33.0,
        "prompt_tokens": 64.0,
        "output_tokens": 250.0,
        "cached_share": 0.0,
        "measured_s": 8.0,
        "client_cpu": 0.1,
        "graph_used": True,
        "notes": [],
        **figures,
    }


def record(
    trial: int = 3,
    values: Mapping[str, Any] = SPECULATIVE,
    *,
    argv: Sequence[str] = ARGV,
    env: Mapping[str, str] | None = None,
    unset: Sequence[str] = (),
    status: Status = Status.OK,
) -> TrialRecord:
    """A finished launch."""
    return TrialRecord(
        trial=trial,
        role=Role.SEARCH,
        candidate=Candidate.of(values),
        launch_index=trial,
        why="first look",
        started_at="2026-03-01T10:00:00+00:00",
        status=status,
        seconds=Seconds(startup=12.0, measuring=20.0, shutdown=1.0, total=33.5),
        command=LaunchCommand(tuple(argv), env or {}, tuple(unset)),
        levels=tuple(
            LevelMeasurement.from_json(data) for data in (level("c1"), level("c8", decode_speed=[41.0, 40.0, 42.0]))
        ),
    )
