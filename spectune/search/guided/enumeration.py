"""Every candidate of a space without visiting every assignment: drafts and their surroundings are judged once each."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spectune.engines.parts import Part
from spectune.engines.protocol import Engine
from spectune.search.guided.choices import Choices, Items, first_matching
from spectune.space import Branch, Candidate, Parameter, SearchSpace

MOST_CAUSES = 3
"""Rules and conditions that are named where nothing is legal."""


@dataclass(frozen=True)
class Census:
    """What becomes of the assignments of a space, counted.

    Attributes:
        raw: Assignments, every value with every other.
        candidates: Different ones that may be launched.
        folded: Rule → legal assignments it rewrote; several rules may have rewritten one.
        excluded: Rule → assignments never launched because of it, each counted once.
        forbidden: Condition of the file → candidates it takes away, each counted once.
        reasons: Excluding rule → what it said of the first assignment.
    """

    raw: int
    candidates: int
    folded: Counter[str]
    excluded: Counter[str]
    forbidden: Counter[str]
    reasons: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def merged(self) -> int:
        """Legal assignments that are another's candidate."""
        return self.raw - self.excluded.total() - self.candidates - self.forbidden.total()


@dataclass
class _Parts:
    """The parts that some parameters give: the different legal ones, and how often each rule spoke."""

    different: dict[Items, None] = field(default_factory=dict)  # in the order of the file
    legal: int = 0
    folded: Counter[str] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, part: Part) -> None:
        if part.illegal is not None:
            self.excluded[part.illegal.rule] += 1
            self.reasons.setdefault(part.illegal.rule, part.illegal.reason)
            return
        self.legal += 1
        self.folded.update(part.folded_by)
        self.different[part.items] = None


@dataclass(frozen=True)
class _Group:
    """Drafts that leave the rest the same knowledge, with everything that may stand beside them."""

    drafts: _Parts
    rests: _Parts

    def folded(self) -> Counter[str]:
        """Count the legal pairs that each rule rewrote, in the draft or beside it."""
        drafts, rests = self.drafts, self.rests
        counts = Counter[str]()
        for rule in {**drafts.folded, **rests.folded}:
            untouched = (drafts.legal - drafts.folded[rule]) * (rests.legal - rests.folded[rule])
            counts[rule] = drafts.legal * rests.legal - untouched
        return counts


@dataclass(frozen=True)
class _Split:
    """A branch's parameters by who reads them: the draft's rules, all other rules, none (the environment)."""

    draft: tuple[Parameter, ...]
    rest: tuple[Parameter, ...]
    free: tuple[Parameter, ...]

    @classmethod
    def of(cls, branch: Branch, engine: Engine) -> _Split:
        names = engine.draft_names([parameter.name for parameter in branch.parameters])
        draft = tuple(parameter for parameter in branch.parameters if parameter.name in names)
        others = [parameter for parameter in branch.parameters if parameter.name not in names]
        free = tuple(parameter for parameter in others if parameter.is_environment)
        return cls(draft, tuple(parameter for parameter in others if not parameter.is_environment), free)

    def groups(self, engine: Engine) -> tuple[_Parts, list[_Group]]:
        """Return the drafts that are excluded whatever else is chosen, and the others in groups."""
        drafts: dict[Any, _Parts] = {}
        illegal = _Parts()
        for values in _assignments(self.draft):
            part = engine.draft_part(values)
            if part.illegal is not None:
                illegal.add(part)
            else:
                drafts.setdefault(part.key, _Parts()).add(part)
        return illegal, [_Group(parts, self._rests(engine, key)) for key, parts in drafts.items()]

    def choices(self, group: _Group) -> tuple[Choices, Choices]:
        """Return a group's drafts, and what may stand beside any of them: each variable is a factor of its own."""
        variables = [[((parameter.name, value),) for value in parameter.values] for parameter in self.free]
        return Choices((list(group.drafts.different),)), Choices((list(group.rests.different), *variables))

    def _rests(self, engine: Engine, key: Any) -> _Parts:
        rests = _Parts()
        for values in _assignments(self.rest):
            rests.add(engine.rest_part(key, values))
        return rests


def legal_candidates(space: SearchSpace, engine: Engine) -> Iterator[Candidate]:
    """Yield every candidate that may be launched once, lazily; those without speculation first."""
    for branch in space.branches:
        yield from _legal(space, engine, branch)


def legal_baselines(space: SearchSpace, engine: Engine) -> Iterator[Candidate]:
    """Yield those without speculation, lazily, in the order of the file."""
    for branch in space.branches:
        if not branch.speculative:
            yield from _legal(space, engine, branch)


def parts(branch: Branch, engine: Engine) -> Iterator[tuple[Choices, Choices]]:
    """Yield drafts, and what may stand beside any of them: all combinations are legal."""
    split = _Split.of(branch, engine)
    return (split.choices(group) for group in split.groups(engine)[1])


def nothing_to_compare(space: SearchSpace, engine: Engine) -> str | None:
    """Return why a search of a space cannot answer anything, None when it can.

    Spaces without speculation are searched for the best settings; where one offers it, some of it has to be legal.
    """
    if space.algorithms:
        offered = (branch for branch in space.branches if branch.speculative)
        if any(True for branch in offered for _ in _legal(space, engine, branch)):
            return None
        lead = "no candidate with speculation is legal"
    else:
        if len(list(itertools.islice(legal_candidates(space, engine), 2))) > 1:
            return None
        lead = "there is one legal candidate at most"
    counted = census(space, engine)
    causes = [f"forbidden by the file: {condition}" for condition in counted.forbidden]
    causes += [counted.reasons.get(rule, rule) for rule, _ in counted.excluded.most_common()]
    because = f": {'; '.join(causes[:MOST_CAUSES])}" if causes else ""
    return f"{space.path}: {lead}, so there is nothing to compare{because}"


def census(space: SearchSpace, engine: Engine, branches: Sequence[Branch] | None = None) -> Census:
    """Count what is folded together, excluded and forbidden, by rule; in some branches, or all."""
    raw = candidates = 0
    folded, excluded, forbidden = Counter[str](), Counter[str](), Counter[str]()
    reasons: dict[str, str] = {}
    for branch in space.branches if branches is None else branches:
        split = _Split.of(branch, engine)
        illegal_drafts, groups = split.groups(engine)
        environments = _count(split.free)
        _spread(excluded, illegal_drafts.excluded, _count(split.rest) * environments)
        reasons |= illegal_drafts.reasons
        for group in groups:
            _spread(excluded, group.rests.excluded, group.drafts.legal * environments)
            reasons |= group.rests.reasons
            _spread(folded, group.folded(), environments)
            drafts, sides = split.choices(group)
            taken = _forbidden(space, drafts, sides)
            forbidden += taken
            candidates += len(drafts) * len(sides) - taken.total()
        raw += branch.size
    return Census(raw, candidates, folded, excluded, forbidden, reasons)


def _legal(space: SearchSpace, engine: Engine, branch: Branch) -> Iterator[Candidate]:
    for drafts, sides in parts(branch, engine):
        for draft in drafts:
            candidates = (Candidate(tuple(sorted(draft + side))) for side in sides)
            yield from (c for c in candidates if not space.forbid or space.forbidden(c) is None)


def _assignments(parameters: Sequence[Parameter]) -> Iterator[dict[str, Any]]:
    names = [parameter.name for parameter in parameters]
    for values in itertools.product(*(parameter.values for parameter in parameters)):
        yield dict(zip(names, values, strict=True))


def _count(parameters: Sequence[Parameter]) -> int:
    return math.prod(len(parameter.values) for parameter in parameters)


def _spread(into: Counter[str], counts: Counter[str], times: int) -> None:
    for rule, count in counts.items():
        if count and times:
            into[rule] += count * times


def _forbidden(space: SearchSpace, drafts: Choices, sides: Choices) -> Counter[str]:
    """Count what each condition takes away, by the first that matches, as the search asks them."""
    names = {name for condition in space.forbid for name in condition.names}
    (drafts, rows), (sides, columns) = drafts.concerning(names), sides.concerning(names)
    times = np.bincount(first_matching(space.forbid, drafts, sides).ravel(), minlength=len(space.forbid))
    counts = Counter[str]()
    for condition, count in zip(space.forbid, times.tolist(), strict=False):
        _spread(counts, Counter({str(condition): count}), rows * columns)
    return counts
