"""What a world tells: the truth about every candidate, and launches of it as a study would record them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from spectune.analysis.estimate import Estimate
from spectune.analysis.measurement import LevelMeasurement
from spectune.engines.protocol import Engine, LaunchCommand
from spectune.search.guided.choices import Items
from spectune.search.guided.enumeration import legal_candidates
from spectune.search.storage.records import Seconds, Status, TrialRecord
from spectune.search.storage.steps import Step
from spectune.serving import Failure, FailureClass
from spectune.space import Candidate, SearchSpace

LAUNCH_SD = 0.015  # between launches, common to all levels of one
WINDOW_SD = 0.005  # between levels of a launch
VERIFIES = 4000  # cycles whose accepted drafts are counted per level
REQUESTS = 40
HALF_WIDTH = 0.01  # of the intervals, relative
PROMPT_TOKENS = 300


@dataclass(frozen=True)
class LevelTruth:
    """A level of a launch without noise.

    Attributes:
        survival: P(at least i drafts right), i from 1.
        cycle_ms: Time of one cycle.
        running: Requests that run at once.
    """

    survival: tuple[float, ...]
    cycle_ms: float
    running: int

    @property
    def speed(self) -> float:
        """tok/s of one request."""
        return 1000.0 * (1.0 + sum(self.survival)) / self.cycle_ms

    def metric(self, name: str) -> float:
        """Return a metric by name."""
        known = {
            "decode_speed": self.speed, "output_throughput": self.speed * self.running, "cycle_ms": self.cycle_ms,
        }  # fmt: skip
        return known[name]


@dataclass(frozen=True)
class Outcome:
    """What a launch of a candidate gives: levels by name, or how it fails."""

    levels: Mapping[str, LevelTruth] = field(default_factory=dict)
    failure: FailureClass | None = None


class Machine(Protocol):
    """Where candidates run."""

    @property
    def name(self) -> str:
        """Of the machine."""
        ...

    @property
    def failure_regions(self) -> int:
        """How many regions of the space fail."""
        ...

    def outcome(self, candidate: Candidate) -> Outcome:
        """Return the truth about a candidate."""
        ...


class World:
    """A machine with a search space: every candidate's noiseless score, and noisy launches."""

    def __init__(
        self, machine: Machine, space: SearchSpace, engine: Engine, candidates: Sequence[Candidate] | None = None
    ) -> None:
        """Join them; all legal candidates can be given where they are known."""
        self.machine, self.space, self.engine = machine, space, engine
        self._candidates = candidates

    @cached_property
    def logs(self) -> Mapping[Items, tuple[float, ...] | None]:
        """Items of every legal candidate → signed logarithm of each objective; None where the launch fails."""
        found = self._candidates or legal_candidates(self.space, self.engine)
        return {c.items: self._logs(self.machine.outcome(c)) for c in found}

    @cached_property
    def best(self) -> float:
        """Greatest mean logarithm of the objectives."""
        return max(sum(logs) / len(logs) for logs in self.logs.values() if logs is not None)

    def score(self, candidate: Candidate) -> float:
        """Return a candidate's noiseless mean logarithm less the best one's; −inf for one that fails."""
        logs = self.logs[candidate.items]
        return -math.inf if logs is None else sum(logs) / len(logs) - self.best

    def best_beside(self, launched: Collection[Items]) -> float:
        """Return the best score among the candidates that were not launched; −∞ where all others fail."""
        others = (
            sum(logs) / len(logs) for items, logs in self.logs.items() if logs is not None and items not in launched
        )
        return max(others, default=-math.inf) - self.best

    def launch(self, step: Step, seed: int) -> TrialRecord:
        """Return the record of a launch; two launches of one candidate differ by the noise of `seed` and its number."""
        outcome = self.machine.outcome(step.candidate)
        rng = np.random.default_rng([seed, step.trial])
        factor = math.exp(LAUNCH_SD * rng.standard_normal())
        levels = tuple(
            _measured(name, truth, factor * math.exp(WINDOW_SD * rng.standard_normal()), rng)
            for name, truth in outcome.levels.items()
        )
        failure = None if outcome.failure is None else Failure(outcome.failure, f"simulated {outcome.failure}", "")
        return TrialRecord(
            trial=step.trial, role=step.role, candidate=step.candidate, launch_index=step.trial, why=step.why,
            status=Status.OK if failure is None else Status.FAILED, seconds=Seconds(600.0, 60.0, 5.0, 670.0),
            started_at="", command=LaunchCommand(()), failure=failure, levels=() if failure else levels,
        )  # fmt: skip

    def _logs(self, outcome: Outcome) -> tuple[float, ...] | None:
        if outcome.failure is not None:
            return None
        signs = [(1.0 if o.direction == "maximize" else -1.0, o) for o in self.space.objectives]
        return tuple(sign * math.log(outcome.levels[o.level].metric(o.metric)) for sign, o in signs)


def _measured(name: str, truth: LevelTruth, factor: float, rng: np.random.Generator) -> LevelMeasurement:
    survival = _counted(truth.survival, rng)
    length = 1.0 + sum(survival)
    return measured_level(name, 1000.0 * length / (truth.cycle_ms * factor), truth.running, length, survival)


def measured_level(
    name: str, speed: float, running: int, length: float, survival: tuple[float, ...]
) -> LevelMeasurement:
    """Return a level as a study records it, from tok/s of one request and what was accepted."""
    cycle = 1000.0 * length / speed
    return LevelMeasurement(
        level=name, n_requests=REQUESTS, failed=0, accept_length=_near(length, HALF_WIDTH if length > 1.0 else 0.0),
        accept_length_by_class={}, per_position=survival, cycle_ms=_near(cycle, HALF_WIDTH), inter_chunk_ms=cycle,
        decode_speed=_near(speed, HALF_WIDTH), output_throughput=_near(speed * running, HALF_WIDTH), ttft_p50_ms=100.0,
        ttft_p95_ms=200.0, itl_p50_ms=cycle, itl_p95_ms=cycle, prompt_tokens=PROMPT_TOKENS,
        output_tokens=1.0 + VERIFIES * length / REQUESTS, cached_share=0.0, measured_s=60.0, client_cpu=0.1,
    )  # fmt: skip


def _counted(survival: Sequence[float], rng: np.random.Generator) -> tuple[float, ...]:
    if not survival:
        return ()
    edges = np.array([1.0, *survival, 0.0])
    counts = rng.multinomial(VERIFIES, np.maximum(0.0, edges[:-1] - edges[1:]) / edges[0])
    at_least = np.cumsum(counts[::-1])[::-1] / VERIFIES
    return tuple(at_least[1:].tolist())


def _near(value: float, half: float) -> Estimate:
    return Estimate(value, value * (1 - half), value * (1 + half))
