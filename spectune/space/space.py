"""A search space as understood: what is fixed, what varies, what must never be launched."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from spectune.space.candidate import Candidate
from spectune.space.conditions import Condition
from spectune.space.dialect import dump
from spectune.space.engine_section import EngineSection
from spectune.space.goals import Budget, Constraint, Objective, Targets
from spectune.space.labels import drafter_name, drafting_of, label_of
from spectune.space.names import ALGORITHM, DRAFTER, NO_SPECULATION
from spectune.space.parameters import Parameter
from spectune.space.schema import SpaceFile
from spectune.space.values import Value, text_of
from spectune.space.workload import Workload


@dataclass(frozen=True)
class Branch:
    """A part of the space in which every assignment has the same names.

    Attributes:
        speculative: Whether its candidates speculate.
        parameters: All of them, the algorithm first; the system parameters of both branches are the same.
    """

    speculative: bool
    parameters: tuple[Parameter, ...]

    @property
    def size(self) -> int:
        """Number of raw assignments, legal or not."""
        return math.prod(len(parameter.values) for parameter in self.parameters)

    def assignments(self) -> Iterator[dict[str, Value]]:
        """Yield every raw assignment, one at a time, the last parameter varying fastest."""
        names = [parameter.name for parameter in self.parameters]
        for values in itertools.product(*(parameter.values for parameter in self.parameters)):
            yield dict(zip(names, values, strict=True))


@dataclass(frozen=True)
class SearchSpace:
    """One search space file, checked and understood.

    Attributes:
        path: The file it came from.
        text: The file as given.
        file: Its sections, defaults filled in.
        parameters: Name → parameter in the order of the file; the algorithm always offers `none`.
        forbid: Conditions of which a candidate must match none.
    """

    path: Path
    text: str
    file: SpaceFile
    parameters: Mapping[str, Parameter]
    forbid: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """Name of the space, and of studies made from it unless told otherwise."""
        return self.file.name

    @property
    def engine(self) -> EngineSection:
        """Engine, fixed arguments and environment."""
        return self.file.engine

    @property
    def workload(self) -> Workload:
        """Prompts and load points."""
        return self.file.workload

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What is optimised, at least one."""
        return self.file.objectives

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What a candidate must keep to be feasible."""
        return self.file.constraints

    @property
    def targets(self) -> Targets:
        """Speeds somebody needs."""
        return self.file.targets

    @property
    def budget(self) -> Budget:
        """What a study may cost."""
        return self.file.budget

    def with_budget(self, budget: Budget) -> SearchSpace:
        """Return the same space with another budget."""
        return replace(self, file=self.file.model_copy(update={"budget": budget}))

    def with_engine(self, engine: EngineSection) -> SearchSpace:
        """Return the same space for another engine."""
        return replace(self, file=self.file.model_copy(update={"engine": engine}))

    @property
    def system_parameters(self) -> tuple[Parameter, ...]:
        """All that apply with and without speculation: what the baseline is tuned over."""
        return tuple(p for p in self.parameters.values() if not p.is_speculative)

    @property
    def speculative_parameters(self) -> tuple[Parameter, ...]:
        """All that apply with speculation only, the algorithm left out."""
        return tuple(p for p in self.parameters.values() if p.is_speculative and p.name != ALGORITHM)

    @property
    def algorithms(self) -> tuple[Value, ...]:
        """The speculative algorithms, `none` left out; empty when the space has no speculation."""
        parameter = self.parameters.get(ALGORITHM)
        return () if parameter is None else tuple(v for v in parameter.values if v != NO_SPECULATION)

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """The no-speculation branch, then the speculation branch if there is one."""
        baseline = Branch(False, (Parameter(ALGORITHM, (NO_SPECULATION,)), *self.system_parameters))
        if not self.algorithms:
            return (baseline,)
        algorithm = Parameter(ALGORITHM, self.algorithms)
        return (baseline, Branch(True, (algorithm, *self.speculative_parameters, *self.system_parameters)))

    def forbidden(self, candidate: Candidate) -> Condition | None:
        """Return the first `forbid` condition that a candidate matches, or None."""
        return next((condition for condition in self.forbid if condition.matches(candidate.values)), None)

    def label(self, candidate: Candidate) -> str:
        """Return a candidate's label without what every candidate of this space shares."""
        return label_of(candidate.values, leave_out=self._fixed)

    def drafting(self, candidate: Candidate) -> str:
        """Return how a candidate drafts, the shortest name there is: `EAGLE3 strong 3,1,4`."""
        return drafting_of(candidate.values, leave_out=self._fixed)

    @property
    def only_drafter(self) -> str | None:
        """What no label names since all that draft have it; None where drafters are searched, or there is none."""
        parameter = self.parameters.get(DRAFTER)
        return drafter_name(text_of(parameter.values[0])) if parameter is not None and parameter.is_fixed else None

    @cached_property
    def _fixed(self) -> frozenset[str]:
        """Names of what every candidate shares."""
        return frozenset(p.name for p in self.parameters.values() if p.is_fixed)

    def resolved_yaml(self) -> str:
        """Return the space as understood, defaults filled in, as a file that loads to the same space."""
        data = self.file.model_dump(mode="json", by_alias=True, exclude_none=True)
        data["search"] = {name: parameter.to_plain() for name, parameter in self.parameters.items()}
        data["forbid"] = [condition.to_plain() for condition in self.forbid]
        if not self.targets.decode_speed:
            del data["targets"]
        return dump(data)
