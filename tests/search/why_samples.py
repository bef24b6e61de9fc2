"""The field case as a study: launches whose figures follow exactly from a stated cycle and acceptance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from operator import mul
from pathlib import Path

from search_samples import level, record

from spectune.analysis.estimate import Estimate
from spectune.analysis.measurement import LevelMeasurement
from spectune.search.storage.records import TrialRecord
from spectune.space import Candidate, SearchSpace, parse_space

TEXT = """
schema: 1
name: field
engine: {python: python3, gpus: 8, args: {model-path: org/model, max-running-requests: 64}}
search:
  speculative-algorithm: [none, EAGLE3]
  speculative-draft-model-path: [org/37k]
  speculative-num-steps: {from: 1, to: 6}
  speculative-eagle-topk: [1]
  speculative-num-draft-tokens: {from: 2, to: 7}
workload: {prompts: builtin:mixed, levels: [{concurrency: 1}, {concurrency: 8}, {concurrency: 32}]}
objectives: [{maximize: decode_speed, level: c1}]
targets: {decode_speed: [100, 120]}
"""
ACCEPTED = (0.63, 0.587, 0.45, 0.38, 0.33, 0.30)
"""Of the drafter trained on 37 K samples: 2.0 at two steps."""

Cycle = Callable[[int, int], float]
"""Steps (0 without speculation) and requests in flight → ms."""


def field_space(text: str = TEXT) -> SearchSpace:
    return parse_space(text, Path("field.yaml"))


def pcie(steps: int, batch: int) -> float:
    """The machine of the field case: plain steps in graphs, verifies outside, 33.3 ms for two steps."""
    if steps == 0:
        return 1.2 + 10.92 + 0.29 * (batch - 1)
    return 1.2 + steps * (1.24 + 0.01 * batch) + 29.0 + 0.29 * (batch * (steps + 1) - 1)


def told(steps: int, batch: int) -> float:
    """The arithmetic the team did: 82 tok/s, a verify of 30 ms, 3.33 ms of draft at two steps, whatever the load."""
    return 1000.0 / 82.0 if steps == 0 else 30.0 + steps * 5.0 / 3.0


def chain(steps: int, drafter: str = "org/37k") -> Candidate:
    values = {
        "speculative-algorithm": "EAGLE3", "speculative-draft-model-path": drafter, "speculative-num-steps": steps,
        "speculative-eagle-topk": 1, "speculative-num-draft-tokens": steps + 1,
    }  # fmt: skip
    return Candidate.of(values if steps else {"speculative-algorithm": "none"})


def launch(
    trial: int, steps: int, cycle: Cycle = pcie, *, graphs: tuple[bool, bool] = (True, False), drafter: str = "org/37k"
) -> TrialRecord:
    """One launch; `graphs` says whether plain steps and verifies ran in them."""
    survival = tuple(accumulate(ACCEPTED[:steps], mul))
    length = 1.0 + sum(survival)
    levels = []
    for batch in (1, 8, 32):
        ms = cycle(steps, batch)
        made = level(f"c{batch}", 1000.0 * length / ms, length)
        levels.append(exactly(replace(made, per_position=survival, graph_used=graphs[steps > 0]), ms))
    return replace(record(trial, chain(steps, drafter)), levels=tuple(levels))


def exactly(made: LevelMeasurement, ms: float) -> LevelMeasurement:
    """The same level, known to half a percent."""

    def near(value: float) -> Estimate:
        return Estimate(value, value * 0.995, value * 1.005)

    return replace(
        made, cycle_ms=near(ms), decode_cycle_ms=near(ms), inter_chunk_ms=ms, decode_speed=near(made.decode_speed.est),
        accept_length=near(made.accept_length.est), output_throughput=near(made.decode_speed.est * int(made.level[1:])),
    )  # fmt: skip


def study(cycle: Cycle = pcie, *, graphs: tuple[bool, bool] = (True, False)) -> list[TrialRecord]:
    """Baseline, chains of one to six steps, and the baseline again."""
    return [launch(trial, steps, cycle, graphs=graphs) for trial, steps in enumerate((0, 1, 2, 3, 4, 5, 6, 0))]
