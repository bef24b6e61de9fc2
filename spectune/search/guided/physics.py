"""Acceptance and cycle time together: the figures of merit of every setting, as far as physics explains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectune.search.evidence.setting import Setting
from spectune.search.guided.acceptance import AcceptanceModel, Accepted, even_survival
from spectune.search.guided.cycle import ERROR, PRIORS, CycleModel, terms
from spectune.search.guided.drafts import Drafts
from spectune.search.guided.evidence import Evidence
from spectune.space import SearchSpace

Floats = npt.NDArray[np.float64]

EXPLAINED = frozenset({"decode_speed", "output_throughput", "cycle_ms"})
"""Metrics that follow from accept length and cycle time; others are left to the Gaussian process."""


@dataclass(frozen=True)
class Target:
    """A quantity that is predicted: the logarithm of a metric at a level, negated where less is better."""

    metric: str
    level: str
    concurrency: int | None
    sign: float

    @property
    def load(self) -> int | None:
        """Requests in flight where physics explains the metric; None where only the Gaussian process can."""
        return self.concurrency if self.metric in EXPLAINED else None


def targets_of(space: SearchSpace) -> tuple[Target, ...]:
    """Return the objectives, then what is bounded."""
    concurrency = {level.name: level.concurrency for level in space.workload.levels}
    objectives = [
        Target(o.metric, o.level, concurrency[o.level], 1.0 if o.direction == "maximize" else -1.0)
        for o in space.objectives
    ]
    bounds = [Target(c.metric, c.level, concurrency[c.level], 1.0) for c in space.constraints]
    return (*objectives, *bounds)


@dataclass(frozen=True)
class Works:
    """Settings with their work at each level, computed once.

    Attributes:
        settings: Different ones.
        terms: Concurrency → work terms, shape (settings, terms).
        batches: Concurrency → requests that run at once, shape (settings,).
        drafts: Each way to draft, whatever graphs it has.
        draft_of: Index of each setting's way to draft.
    """

    settings: tuple[Setting, ...]
    terms: Mapping[int, Floats]
    batches: Mapping[int, Floats]
    drafts: Drafts
    draft_of: npt.NDArray[np.int64]

    @classmethod
    def of(cls, settings: Sequence[Setting], concurrencies: Sequence[int], drafters: Sequence[str]) -> Works:
        """Compute the terms."""
        loads = list(dict.fromkeys(concurrencies))
        different: dict[object, int] = {}
        draft_of = [different.setdefault(setting.draft, len(different)) for setting in settings]
        first = dict(zip(reversed(draft_of), reversed(settings), strict=True))
        return cls(
            settings=tuple(settings),
            terms={load: terms(settings, load, drafters) for load in loads},
            batches={load: np.array([setting.batch(load) for setting in settings], np.float64) for load in loads},
            drafts=Drafts.of([first[at] for at in range(len(first))]),
            draft_of=np.array(draft_of, np.int64),
        )


@dataclass(frozen=True)
class Physics:
    """Fitted models of acceptance and cycle time."""

    acceptance: AcceptanceModel
    cycle: CycleModel

    @classmethod
    def fit(
        cls,
        evidence: Sequence[Evidence],
        settings: Sequence[Setting],
        drafters: Sequence[str],
        depth: int,
        *,
        scatter: float = ERROR,
    ) -> Physics:
        """Fit both models; without launches they are guesses, a cycle of the baseline being the unit of time.

        Args:
            evidence: Launches with levels.
            settings: Of these launches.
            drafters: All of the table.
            depth: Deepest draft of the table.
            scatter: Standard deviation of the log of a cycle time from launch to launch.
        """
        accepted: list[Accepted] = []
        timed: dict[int, list[tuple[Setting, float, float]]] = {}
        for item, setting in zip(evidence, settings, strict=True):
            for level in item.levels:
                if level.concurrency is not None:
                    timed.setdefault(level.concurrency, []).append((setting, level.cycle_ms, item.noise))
                if setting.drafter is not None:
                    survival = level.survival or even_survival(level.accept_length, setting.depth)
                    verifies = item.counted * level.verifies
                    accepted.append(Accepted(setting, survival, level.accept_length, verifies, level.classes))
        rows = [terms([setting for setting, _, _ in seen], load, drafters) for load, seen in timed.items()]
        every = [one for seen in timed.values() for one in seen]
        times, errors = np.array([(ms, error) for _, ms, error in every]).reshape(-1, 2).T
        baseline = min((ms for setting, ms, _ in every if setting.drafter is None), default=min(times, default=1.0))
        work = np.concatenate(rows) if rows else np.zeros((0, len(PRIORS) + len(drafters)))
        cycle = CycleModel.fit(work, times, baseline, errors * (max(ERROR, scatter) / ERROR))
        return cls(AcceptanceModel.fit(accepted, depth), cycle)

    def lengths(self, works: Works) -> Floats:
        """Return the accept length to expect of each setting, shape (settings,)."""
        return self.acceptance.lengths(works.drafts)[works.draft_of]

    def expected(self, works: Works, targets: Sequence[Target]) -> Floats:
        """Return the expected value of each target, shape (targets, settings); 0 for what physics does not explain."""
        lengths = np.log(self.lengths(works))
        found = np.zeros((len(targets), len(works.settings)))
        for row, target in zip(found, targets, strict=True):
            if target.load is None:
                continue
            cycle = np.log(self.cycle.ms(works.terms[target.load]))
            if target.metric == "cycle_ms":
                row[:] = target.sign * cycle
                continue
            row[:] = lengths - cycle + np.log(1000.0)
            if target.metric == "output_throughput":
                row[:] += np.log(works.batches[target.load])
        return found

    def features(self, works: Works, targets: Sequence[Target], drafts: Drafts) -> Floats:
        """Return what may be wrong with the expected values, in independent parts, shape (settings, parts).

        Args:
            works: Settings.
            targets: What is expected; each has its own parts, weighted so that together they count once.
            drafts: Ways to draft whose parts are told apart.
        """
        loads = [target.load for target in targets if target.load is not None]
        if not loads:
            return np.zeros((len(works.settings), 0))
        cycles = [self.cycle.features(works.terms[load]) / np.sqrt(len(loads)) for load in loads]
        accepted = self.acceptance.features(works.drafts, self.acceptance.lengths(works.drafts), drafts)
        return np.concatenate([*cycles, accepted[works.draft_of]], axis=1)
