"""A study of chains, by their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from export_samples import level, record

from spectune.analysis.measurement import LevelMeasurement
from spectune.search import Role, TrialRecord
from spectune.space import SearchSpace, parse_space

SPACE = """
schema: 1
name: steps
engine: {python: python3, gpus: 8, args: {model-path: org/model, tp-size: 8}}
search:
  speculative-algorithm: [none, EAGLE3]
  speculative-draft-model-path: runtime:drafter-strong
  speculative-num-steps: {from: 1, to: 7}
  speculative-eagle-topk: [1, 2]
  speculative-num-draft-tokens: {from: 2, to: 16}
  page-size: [1, 16]
workload: {prompts: builtin:tiny, levels: [{concurrency: 1}, {concurrency: 8}, {concurrency: 32}]}
objectives: [{maximize: decode_speed, level: c1}, {maximize: output_throughput, level: c32}]
"""
LEVELS = ("c1", "c8", "c32")


def values(steps: int, **more: Any) -> dict[str, Any]:
    if steps == 0:
        return {"speculative-algorithm": "none", "page-size": 1, **more}
    return {
        "speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "runtime:drafter-strong",
        "speculative-num-steps": steps, "speculative-eagle-topk": 1, "speculative-num-draft-tokens": steps + 1,
        "page-size": 1, **more,
    }  # fmt: skip


def launched(trial: int, steps: int, speeds: Sequence[float], **more: Any) -> TrialRecord:
    made = record(trial, values(steps, **more))
    measured = [
        level(name, decode_speed=[v, v * 0.99, v * 1.01], output_throughput=[v * int(name[1:]), None, None])
        for name, v in zip(LEVELS, speeds, strict=False)
    ]
    role = Role.SEARCH if steps else Role.BASELINE
    return replace(made, role=role, levels=tuple(LevelMeasurement.from_json(data) for data in measured))


def steps_study(speeds: Mapping[int, Sequence[float]], text: str = SPACE) -> tuple[SearchSpace, list[TrialRecord]]:
    """A study with one launch for each number of steps; 0 does not speculate."""
    records = [launched(trial, steps, figures) for trial, (steps, figures) in enumerate(speeds.items())]
    return parse_space(text, Path("steps.yaml")), records
