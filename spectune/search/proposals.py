"""What to launch next: legal, canonical, not forbidden, and never launched before."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectune.engines.protocol import Engine, Illegal
from spectune.errors import SpectuneError
from spectune.search.enumeration import legal_candidates
from spectune.search.ledger import as_trials
from spectune.search.records import TrialRecord
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

DRAWS = 40  # by the sampler, before a candidate is taken at random
OPENING_STEPS = 3  # SGLang's own default for most models; a chain of it also predicts every shorter one
STARTUP_LAUNCHES = 6


@dataclass(frozen=True)
class Proposal:
    """A candidate and one sentence on why it is worth a launch."""

    candidate: Candidate
    why: str


class Proposer:
    """Draws candidates from an Optuna sampler that has seen every record."""

    def __init__(self, space: SearchSpace, engine: Engine, *, seed: int = 0) -> None:
        self._space, self._engine, self._seed = space, engine, seed
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
        for candidate in self.openings():
            if candidate.candidate_id not in seen:
                return Proposal(
                    candidate, "the first launch of this algorithm and drafter, with a chain that tells most about it"
                )
        return self._drawn(records, seen) or self._any(seen, len(records))

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

    def _drawn(self, records: Sequence[TrialRecord], seen: AbstractSet[str]) -> Proposal | None:
        """Let the sampler draw until it draws something new.

        The draws happen in a copy of the study in memory, so that those that come to nothing leave no trace.
        """
        study = self._memory_study(records)
        for _ in range(DRAWS):
            candidate = self.legal(dict(self._engine.repaired(self._suggested(study.ask()))))
            if candidate is not None and self._new(candidate, seen):
                learned = len(records) > STARTUP_LAUNCHES
                return Proposal(candidate, "most promising by TPE" if learned else "drawn at random to learn the space")
        return None

    def _new(self, candidate: Candidate, seen: AbstractSet[str]) -> bool:
        """Whether the search may launch a candidate: the plan tunes the no-speculation branch, where there are two."""
        return candidate.candidate_id not in seen and (candidate.speculative or not self._space.algorithms)

    def _memory_study(self, records: Sequence[TrialRecord]) -> Study:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(directions=directions(self._space), sampler=self._sampler(len(records)))
        study.add_trials(as_trials(records, self._space))
        return study

    def _sampler(self, launches: int) -> BaseSampler:
        import optuna

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            # Seeded by how much is known, so that a resumed study goes on as the uninterrupted one would.
            return optuna.samplers.TPESampler(
                seed=self._seed + launches, n_startup_trials=STARTUP_LAUNCHES, multivariate=True, group=True
            )

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

    def _any(self, seen: AbstractSet[str], launches: int) -> Proposal | None:
        """Return some candidate not seen yet, drawn at random where the space is large."""
        why = "not tried yet; the sampler only came back to launched ones"
        rng = random.Random(self._seed + launches)  # noqa: S311 (no secret depends on it)
        parameters = self._space.parameters.values()
        for _ in range(1000):
            drawn = {p.name: p.values[rng.randrange(len(p.values))] for p in parameters}
            candidate = self.legal(dict(self._engine.repaired(drawn)))
            if candidate is not None and self._new(candidate, seen):
                return Proposal(candidate, why)
        unseen = next((c for c in self.all() if self._new(c, seen)), None)
        return None if unseen is None else Proposal(unseen, why)


def suggest(trial: Trial, parameter: Parameter) -> Value:
    """Let the sampler choose a value of the parameter."""
    if parameter.is_fixed:
        return parameter.values[0]
    domain = parameter.domain
    if isinstance(domain, IntegerRange):
        return trial.suggest_int(parameter.name, domain.low, domain.high, step=domain.step)
    return decode(parameter, trial.suggest_categorical(parameter.name, [encode(value) for value in domain]))
