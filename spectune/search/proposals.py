"""What to launch next: legal, canonical, not forbidden, and never launched before."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from spectune.engines.protocol import Engine, Illegal
from spectune.errors import SpectuneError
from spectune.search.enumeration import legal_candidates
from spectune.search.exclusions import Exclusion, excluded, learned
from spectune.search.guided.evidence import evidence_of
from spectune.search.ledger import as_trials
from spectune.search.records import TrialRecord
from spectune.search.samplers import GUIDED, STARTUP_LAUNCHES, check_sampler, stock_sampler
from spectune.search.values import decode, directions, encode
from spectune.space import (
    ALGORITHM,
    DRAFTER,
    EAGLE_TOPK,
    NO_SPECULATION,
    NUM_STEPS,
    Candidate,
    IntegerRange,
    Parameter,
    SearchSpace,
    Value,
)

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial

    from spectune.search.guided.guide import Guide
    from spectune.search.guided.stopping import Outlook

DRAWS = 40  # by the sampler, before a candidate is taken at random
OPENING_STEPS = 5  # SGLang's own default for most models; a chain of it also predicts every shorter one


@dataclass(frozen=True)
class Proposal:
    """A candidate and one sentence on why it is worth a launch."""

    candidate: Candidate
    why: str


class Proposer:
    """Draws candidates from an Optuna sampler that has seen every record."""

    def __init__(self, space: SearchSpace, engine: Engine, *, sampler: str = GUIDED, seed: int = 0) -> None:
        """Choose a sampler.

        Raises:
            SpectuneError: It does not exist, or needs what is not installed.
        """
        check_sampler(sampler)
        self._space, self._engine, self._name, self._seed = space, engine, sampler, seed
        self._baselines: Sequence[Candidate] | None = None

    def baseline(self) -> Candidate:
        """Return the no-speculation candidate with the first values of the file that are legal together.

        Raises:
            SpectuneError: When every candidate without speculation is illegal or forbidden.
        """
        if not self.baselines():
            plain = next(branch for branch in self._space.branches if not branch.speculative)
            first = self._engine.canonical(next(plain.assignments()))
            why = f"; the first of them: {first.reason}" if isinstance(first, Illegal) else ""
            raise SpectuneError(
                f"{self._space.path}: the space has no legal candidate without speculation to compare with{why}"
            )
        return self.baselines()[0]

    def baselines(self) -> Sequence[Candidate]:
        """Return every legal candidate without speculation, in the order of the file."""
        if self._baselines is None:
            self._baselines = list(itertools.takewhile(lambda candidate: not candidate.speculative, self.all()))
        return self._baselines

    def legal(self, assignment: dict[str, Any]) -> Candidate | None:
        """Return the canonical candidate of an assignment, None when it must not be launched."""
        candidate = self._engine.canonical(assignment)
        if isinstance(candidate, Illegal) or self._space.forbidden(candidate) is not None:
            return None
        return candidate

    def propose(self, records: Sequence[TrialRecord]) -> Proposal | None:
        """Return the next candidate; None when every legal one has been launched."""
        seen = {record.candidate.candidate_id for record in records}
        ruled_out = learned(records)
        for candidate in self.openings():
            if candidate.candidate_id not in seen and excluded(candidate, ruled_out) is None:
                return Proposal(
                    candidate, "the first launch of this algorithm and drafter, with a chain that tells most about it"
                )
        drawn = self._drawn(records, seen, ruled_out)
        return drawn if drawn is not None or self._name == GUIDED else self._any(seen, ruled_out, len(records))

    def standing(self, records: Sequence[TrialRecord], candidate: Candidate) -> float | None:
        """Return what the guided search believes of a launched candidate, as mean log of the objectives.

        One launch is lucky, another is not: what similar candidates measured says which. None for other samplers.
        """
        return self._guide.standing(evidence_of(records, self._space), candidate) if self._name == GUIDED else None

    def outlook(self, records: Sequence[TrialRecord]) -> Outlook | None:
        """Return what the guided search expects of going on; None for other samplers, and while it cannot tell."""
        if self._name != GUIDED or any(True for c in self.openings() if all(c != r.candidate for r in records)):
            return None
        return self._guide.outlook(evidence_of(records, self._space))

    def all(self) -> Iterator[Candidate]:
        """Yield every legal candidate once, lazily."""
        return legal_candidates(self._space, self._engine)

    def openings(self) -> Iterator[Candidate]:
        """Yield the first launch of every algorithm and drafter: the chain whose length is nearest SGLang's default."""
        parameters = self._space.parameters
        if ALGORITHM not in parameters:
            return
        first: dict[str, Any] = {name: p.values[0] for name, p in parameters.items()}
        for name, wanted in ((NUM_STEPS, OPENING_STEPS), (EAGLE_TOPK, 1)):
            if name in parameters:
                first[name] = min(parameters[name].values, key=lambda value: abs(int(str(value)) - wanted))
        drafters: Sequence[Value | None] = parameters[DRAFTER].values if DRAFTER in parameters else (None,)
        for algorithm, drafter in itertools.product(parameters[ALGORITHM].values, drafters):
            if algorithm == NO_SPECULATION:
                continue
            chosen = {**first, ALGORITHM: algorithm} | ({} if drafter is None else {DRAFTER: drafter})
            candidate = self.legal(dict(self._engine.repaired(chosen)))
            if candidate is not None:
                yield candidate

    def _drawn(
        self, records: Sequence[TrialRecord], seen: AbstractSet[str], ruled_out: Sequence[Exclusion]
    ) -> Proposal | None:
        """Let the sampler draw until it draws something new.

        The draws happen in a copy of the study in memory, so that those that come to nothing leave no trace.
        """
        sampler = self._sampler(len(records))
        study = self._memory_study(records, sampler)
        for _ in range(DRAWS):
            suggested = self._suggested(study.ask())
            if self._name == GUIDED and not getattr(sampler, "why", ""):  # nothing is left that is worth a launch
                return None
            candidate = self.legal(dict(self._engine.repaired(suggested)))
            if candidate is None:
                continue
            if self._new(candidate, seen, ruled_out):
                return Proposal(candidate, getattr(sampler, "why", "") or self._why(len(records)))
            if self._name == GUIDED:
                self._guide.refuse(candidate)
        return None

    def _new(self, candidate: Candidate, seen: AbstractSet[str], ruled_out: Sequence[Exclusion]) -> bool:
        """Whether the search may launch a candidate.

        The plan tunes the no-speculation branch, where there are two; the guided search sees both at once.
        """
        mine = candidate.speculative or self._name == GUIDED or not self._space.algorithms
        return mine and candidate.candidate_id not in seen and excluded(candidate, ruled_out) is None

    def _why(self, launches: int) -> str:
        if self._name in {"random", "grid", "qmc"} or launches <= STARTUP_LAUNCHES:
            return f"drawn by the sampler {self._name} to learn the space"
        return f"most promising by the sampler {self._name}"

    def _memory_study(self, records: Sequence[TrialRecord], sampler: BaseSampler) -> Study:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(directions=directions(self._space), sampler=sampler)
        study.add_trials(as_trials(records, self._space))
        return study

    def _sampler(self, launches: int) -> BaseSampler:
        # Seeded by how much is known, so that a resumed study goes on as the uninterrupted one would.
        if self._name != GUIDED:
            return stock_sampler(self._name, self._space, seed=self._seed + launches)
        from spectune.search.guided.sampler import GuidedSampler

        return GuidedSampler(self._guide, seed=self._seed + launches)

    @cached_property
    def _guide(self) -> Guide:
        from spectune.search.guided.guide import Guide

        return Guide(self._space, self._engine, seed=self._seed)

    def _suggested(self, trial: Trial) -> dict[str, Any]:
        """Ask for the algorithm first, and for draft parameters only where there is speculation."""
        assignment: dict[str, Any] = {}
        speculative = True
        parameters = self._space.parameters.values()
        for parameter in sorted(parameters, key=lambda p: (p.name != ALGORITHM, p.is_speculative)):
            if parameter.name != ALGORITHM and parameter.is_speculative and not speculative:
                continue
            assignment[parameter.name] = value = suggest(trial, parameter)
            if parameter.name == ALGORITHM:
                speculative = value != NO_SPECULATION
        return assignment

    def _any(self, seen: AbstractSet[str], ruled_out: Sequence[Exclusion], launches: int) -> Proposal | None:
        """Return some candidate not seen yet, drawn at random where the space is large."""
        why = "not tried yet; the sampler only came back to launched ones"
        rng = random.Random(self._seed + launches)  # noqa: S311 (no secret depends on it)
        parameters = self._space.parameters.values()
        for _ in range(1000):
            drawn = {p.name: p.values[rng.randrange(len(p.values))] for p in parameters}
            candidate = self.legal(dict(self._engine.repaired(drawn)))
            if candidate is not None and self._new(candidate, seen, ruled_out):
                return Proposal(candidate, why)
        unseen = next((c for c in self.all() if self._new(c, seen, ruled_out)), None)
        return None if unseen is None else Proposal(unseen, why)


def suggest(trial: Trial, parameter: Parameter) -> Value:
    """Let the sampler choose a value of the parameter."""
    if parameter.is_fixed:
        return parameter.values[0]
    domain = parameter.domain
    if isinstance(domain, IntegerRange):
        return trial.suggest_int(parameter.name, domain.low, domain.high, step=domain.step)
    return decode(parameter, trial.suggest_categorical(parameter.name, [encode(value) for value in domain]))
