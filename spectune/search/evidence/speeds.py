"""What of a launch is compared: the objectives together, each of them, and the decode speed at every level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from spectune.analysis.comparison import LaunchSpeed
from spectune.analysis.estimate import Estimate
from spectune.analysis.launch_noise import within_launch_variance
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.values import figure
from spectune.space import Candidate, Objective, SearchSpace, Value, is_speculative
from spectune.space.metrics import METRICS, Direction

NONE: Mapping[str, float] = MappingProxyType({})
_INVERTED: Mapping[Direction, str] = MappingProxyType({"maximize": "", "minimize": "1 / "})
Speed = Callable[[TrialRecord], Estimate | None]
"""Takes the figure of a launch as a speed: more is better. None where it was not measured."""


def together(space: SearchSpace) -> Speed:
    """Return what verdicts rest on: the geometric mean of the objectives, as the search ranks by it."""
    parts = [(objective.level, of_objective(objective)) for objective in space.objectives]

    def speed(record: TrialRecord) -> Estimate | None:
        found = [(level, value) for level, part in parts if (value := part(record)) is not None and value.est > 0.0]
        return _geometric_mean(found) if len(found) == len(parts) else None

    return speed


def of_objective(objective: Objective) -> Speed:
    """Return one objective; what is minimised is inverted."""

    def speed(record: TrialRecord) -> Estimate | None:
        level = record.level(objective.level)
        if level is None:
            return None
        value = getattr(level, objective.metric)
        found = value if isinstance(value, Estimate) else Estimate.exactly(figure(level, objective.metric))
        if objective.direction == "maximize":
            return found
        return None if found.est <= 0 else Estimate(
            1 / found.est, 1 / found.hi, 1 / found.lo if found.lo > 0 else math.inf
        )  # fmt: skip

    return speed


def counted(objectives: Sequence[Objective]) -> str:
    """Return what `together` compares in words; empty where that is the speed of one request, which alone has a τ*."""
    if [objective.metric for objective in objectives] == ["decode_speed"]:
        return ""
    named = [f"{_INVERTED[one.direction]}{METRICS[one.metric].words} at {one.level}" for one in objectives]
    return named[0] if len(named) == 1 else f"the geometric mean of {' and '.join(named)}"


def of_level(name: str) -> Speed:
    """Return the decode speed at a level."""

    def speed(record: TrialRecord) -> Estimate | None:
        level = record.level(name)
        return None if level is None else level.decode_speed

    return speed


def of_throughput(name: str) -> Speed:
    """Return the tokens per second of all requests at a level."""

    def speed(record: TrialRecord) -> Estimate | None:
        level = record.level(name)
        return None if level is None else level.output_throughput

    return speed


def speeds(
    records: Iterable[TrialRecord],
    speed: Speed,
    level: str,
    space: SearchSpace,
    doubts: Mapping[str, float] = NONE,
) -> list[LaunchSpeed]:
    """Return every launch's speed with what a comparison needs beside it.

    Args:
        records: Launches.
        speed: What is compared.
        level: The level whose accept length stands beside it.
        space: The search space.
        doubts: What is not known of each place, as the timeline has it.
    """
    found = []
    for record in records:
        value, measured, candidate = speed(record), record.level(level), record.candidate
        if value is not None and value.est > 0.0 and measured is not None:
            found.append(
                LaunchSpeed(
                    candidate.candidate_id, value, speculates=candidate.speculative,
                    accept_length=measured.accept_length.est, simplicity=simplicity(candidate, space),
                    place=record.place, place_variance=doubts.get(record.place, 0.0),
                )
            )  # fmt: skip
    return found


def simplicity(candidate: Candidate, space: SearchSpace) -> tuple[int, ...]:
    """Return a sort key, simpler first: none, chain, tree; fewer steps; fewer draft tokens; fewer system flags.

    A system flag counts where its value is not the first one the file lists.
    """
    flags = sum(
        parameter.name in candidate.values and candidate.values[parameter.name] != parameter.values[0]
        for parameter in space.system_parameters
    )
    tree = (candidate.eagle_topk or 1) > 1
    shape = (candidate.num_steps or 0, candidate.num_draft_tokens or 0)
    return (int(candidate.speculative) + int(tree), *shape, flags)


def system_values(candidate: Candidate) -> dict[str, Value]:
    """Return what a candidate has in common with one that does not speculate."""
    return {name: value for name, value in candidate.items if not is_speculative(name)}


def by_candidate(records: Iterable[TrialRecord]) -> dict[Candidate, list[TrialRecord]]:
    """Return the launches of each candidate."""
    groups: dict[Candidate, list[TrialRecord]] = {}
    for record in records:
        groups.setdefault(record.candidate, []).append(record)
    return groups


def _geometric_mean(estimates: Sequence[tuple[str, Estimate]]) -> Estimate:
    """Of figures by the level they were measured at.

    Those of one level are figures of the same requests, so their errors are taken to be the same error and add up;
    those of different levels are independent: ln of the mean has Σ (Σ deviations of a level)² / k².
    """
    deviations: dict[str, float] = {}
    for level, estimate in estimates:
        deviations[level] = deviations.get(level, 0.0) + math.sqrt(within_launch_variance(estimate))
    mean = math.exp(math.fsum(math.log(estimate.est) for _, estimate in estimates) / len(estimates))
    spread = 1.96 * math.hypot(*deviations.values()) / len(estimates)
    return Estimate(mean, mean * math.exp(-spread), mean * math.exp(spread))
