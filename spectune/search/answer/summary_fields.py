"""What `summary.json` holds: a study's answer for other programs. `docs/summary.md` explains every field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectune.analysis.diagnosis import Cost
from spectune.analysis.estimate import Estimate
from spectune.analysis.verdict import Decision
from spectune.jsonable import Jsonable
from spectune.search.answer.in_question import InQuestion
from spectune.search.evidence.figures import Figures
from spectune.search.planning.plan import Stop
from spectune.search.planning.undecided import Remedy
from spectune.search.proposing.exclusions import Exclusion
from spectune.search.proposing.warm_start import WarmStart
from spectune.search.storage.steps import SCHEMA
from spectune.space import Objective
from spectune.space.metrics import PERCENTILES

if TYPE_CHECKING:
    from spectune.search.guided.effects import Effect


@dataclass(frozen=True)
class ObjectiveRatio(Jsonable):
    """The comparison by one objective alone."""

    words: str
    ratio: Estimate


@dataclass(frozen=True)
class Speedup(Jsonable):
    """The comparison that the verdict rests on."""

    candidate_id: str
    label: str
    baseline_id: str
    by: str
    objectives: Sequence[ObjectiveRatio]
    judged: Estimate
    launches: tuple[int, int]
    seen_in_search: float | None


@dataclass(frozen=True)
class Noise(Jsonable):
    """What launches of one configuration differ by."""

    launch_sd: float
    dof: float


@dataclass(frozen=True)
class MachineDrift(Jsonable):
    """How the machine changed, steadily."""

    per_hour: Estimate
    corrected: bool
    words: str


@dataclass(frozen=True)
class MachineJump(Jsonable):
    """How the machine changed, at once."""

    before: int
    after: int
    change: Estimate
    causes: Sequence[str]
    words: str


@dataclass(frozen=True)
class Place(Jsonable):
    """Where launches were made."""

    place: str
    launches: int
    speed: Estimate
    drift: MachineDrift | None


@dataclass(frozen=True)
class Recommended(Jsonable):
    """The launch to run."""

    trial: int
    candidate_id: str
    label: str
    argv: Sequence[str]
    env: Mapping[str, str]
    unset: Sequence[str]


@dataclass(frozen=True)
class Tie(Jsonable):
    """What the launches cannot tell from the recommended candidate."""

    candidate_id: str
    label: str
    ratio: Estimate
    launches: int


@dataclass(frozen=True)
class BaselineLevel(Jsonable):
    """One launch without speculation at one level."""

    trial: int
    level: str
    decode_speed: Estimate
    output_throughput: Estimate


@dataclass(frozen=True)
class CandidateLevel:
    """One candidate at one level, over all its launches that count.

    Attributes:
        candidate_id: The candidate.
        label: What it is called.
        trials: The launches.
        num_steps: S.
        level: The load point.
        confirmed: Whether it was relaunched after it had been picked.
        figures: Of all requests.
        percentiles: Of waiting, in ms, by metric.
        by_class: Accept length of each class of prompts.
    """

    candidate_id: str
    label: str
    trials: Sequence[int]
    num_steps: int | None
    level: str
    confirmed: bool
    figures: Figures
    percentiles: Mapping[str, float]
    by_class: Mapping[str, Estimate]

    def figure(self, metric: str) -> Estimate:
        """Return the figure of a metric, without an interval where it has none."""
        if metric in PERCENTILES:
            return Estimate.exactly(self.percentiles[metric])
        found: Estimate = getattr(self.figures, metric)
        return found

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the entries of `candidates`: that of all requests, then those of their classes."""
        row = {
            "candidate_id": self.candidate_id, "label": self.label, "trials": list(self.trials),
            "num_steps": self.num_steps, "level": self.level, "confirmed": self.confirmed,
        }  # fmt: skip
        yield row | {"class": "all"} | self.figures.to_json() | dict(self.percentiles)
        for name, length in self.by_class.items():
            yield row | {"class": name, "accept_length": length.to_json()}


@dataclass(frozen=True)
class OutsideGraphs(Jsonable):
    """What of the speculation in question ran outside CUDA graphs, and what helps."""

    candidate_id: str
    label: str
    cause: str
    evidence: str
    actions: Sequence[tuple[str, Cost]]


@dataclass(frozen=True)
class Summary(Jsonable):
    """A study's answer, in the order of the file."""

    study: str
    simulated: bool
    engine: str
    finished: bool
    verdict: Decision
    sentence: str
    details: Sequence[str]
    no_answer: str | None
    unkept: str | None
    words: Sequence[str]
    beside: str | None
    detectable_effect: float | None
    to_decide: Remedy | None
    speedup: Speedup | None
    noise: Noise
    drift: MachineDrift | None
    steadiness: Sequence[str]
    jumps: Sequence[MachineJump]
    places: Sequence[Place]
    recommended: Recommended | None
    ties: Sequence[Tie]
    pareto: Sequence[int]
    baselines: Sequence[BaselineLevel]
    named: Sequence[str]
    candidates: Sequence[CandidateLevel]
    in_question: InQuestion | None
    outside_graphs: OutsideGraphs | None
    effects: Sequence[Effect]
    failures: Mapping[str, int]
    exclusions: Sequence[Exclusion]
    suspect: int
    warm_start: WarmStart | None
    stop: Stop | None
    objectives: Sequence[Objective]
    targets: Mapping[str, Sequence[float]]
    seconds: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        return {"schema": SCHEMA, **super().to_json()} | {
            "candidates": [entry for one in self.candidates for entry in one.entries()],
            "stop": None if self.stop is None else {"reason": self.stop.reason, "figure": self.stop.figure},
            "objectives": [{"metric": o.metric, "direction": o.direction, "level": o.level} for o in self.objectives],
        }
