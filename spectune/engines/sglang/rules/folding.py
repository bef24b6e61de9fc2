"""What a search derives from the table: the form that stands for all alike, and what is never launched.

What the table says of a candidate falls into what it says of S, K and N under their algorithm, and what it says of
everything else beside an algorithm and K. Both parts are judged once each, so that a space of S × K × N × everything
else costs their sum and not their product.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spectune.engines.parts import Assignment, Illegal, Part
from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.options import SHIPPED_VERSION
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.eagle import draft_token_bounds
from spectune.engines.sglang.rules.judging import Finding, judge, rewrite
from spectune.engines.sglang.rules.rule import Rule
from spectune.engines.sglang.rules.state import State
from spectune.engines.sglang.rules.table import folding, pipeline
from spectune.space import Candidate, is_speculative

REMEMBERED = 50_000  # parts, about a kilobyte each
_UNKNOWN = Model.unknown()
_NOTHING = Part(())


def nearest_legal(assignment: Assignment) -> Assignment:
    """Return the assignment with N moved to the nearest count its S and K can fill."""
    steps, topk, tokens = (assignment.get(name) for name in (n.STEPS, n.TOPK, n.DRAFT_TOKENS))
    if n.algorithm_of(assignment) not in n.EAGLE_FAMILY or steps is None or topk is None or tokens is None:
        return assignment
    _, most = draft_token_bounds(steps, topk)
    return {**assignment, n.DRAFT_TOKENS: min(max(tokens, steps + 1), most)}  # a path of S steps has to fit


@dataclass(frozen=True)
class Rulebook:
    """The table, asked by a search whose launches share arguments.

    Attributes:
        base: Arguments of a launch of which the candidate names none, spectune's own defaults included.
        env: Variables every launch shares.
        version: SGLang's version.
        model_of: What is known of a model by its reference.
    """

    base: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict)
    version: str = SHIPPED_VERSION
    model_of: Callable[[Any], Model] = field(default=lambda _: _UNKNOWN, repr=False, compare=False)
    _drafts: dict[Any, Part] = field(default_factory=dict, repr=False, compare=False)
    _rests: dict[Any, Part] = field(default_factory=dict, repr=False, compare=False)

    def draft_names(self, names: Collection[str]) -> frozenset[str]:
        """Return the names to judge by themselves; all of them where rules couple S and N to the rest."""
        return frozenset(names) if self._coupled(names) else frozenset(names) & n.DRAFT_NAMES

    def draft_part(self, values: Assignment) -> Part:
        """Judge S, K, N and the algorithm, whatever else is chosen."""
        return _remembered(self._drafts, values, None, lambda: self._draft_part(values))

    def rest_part(self, key: Any, values: Assignment) -> Part:
        """Judge everything else beside every draft with this key."""
        if key is None:  # judged with the draft
            return _NOTHING
        return _remembered(self._rests, values, key, lambda: self._rest_part(key, values))

    def _draft_part(self, values: Assignment) -> Part:
        if self._coupled(values):
            return self._judged(values, self.base, self._target)
        draft_base = {name: value for name, value in self.base.items() if name in n.DRAFT_NAMES}
        algorithm = n.algorithm_of({**draft_base, **values})
        if algorithm is None:
            return Part(((n.ALGORITHM, n.NONE),), key=(None, None, None))
        part = self._judged(values, draft_base, _UNKNOWN)  # the drafter is among the rest
        folded = {**draft_base, **dict(part.items)}
        key: tuple[Any, ...] = (algorithm, None, None)
        if algorithm in n.EAGLE_FAMILY:
            key = (algorithm, folded.get(n.TOPK), folded.get(n.STEPS) == 1)
        return Part(part.items, part.folded_by, part.illegal, key)

    def _rest_part(self, key: Any, values: Assignment) -> Part:
        algorithm, topk, single = key
        beside = {} if algorithm is None else {n.ALGORITHM: algorithm}
        if topk is not None:  # a draft that is legal with K stands in for all of them
            steps = 1 if single else 2
            beside |= {n.STEPS: steps, n.TOPK: topk, n.DRAFT_TOKENS: steps + 1}
        rest = {name: value for name, value in self.base.items() if name not in n.DRAFT_NAMES}
        part = self._judged(values, {**rest, **beside}, self._target)
        return Part(tuple(item for item in part.items if item[0] != n.ALGORITHM), part.folded_by, part.illegal)

    def _coupled(self, names: Collection[str]) -> bool:
        return not (n.COUPLING.isdisjoint(names) and n.COUPLING.isdisjoint(self.base))

    def findings(self, launch: Mapping[str, Any], env: Mapping[str, str]) -> list[Finding]:
        """Return what the table says of a complete launch."""
        return judge(self._state(launch, self._target, env), self.version)[0]

    def expected(self, launch: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values SGLang should report for a complete launch's arguments."""
        state = self._state(launch, self._target, self.env)
        judge(state, self.version)
        return {name: state.values[name] for name in launch if name in state.values}

    def _state(self, launch: Mapping[str, Any], model: Model, env: Mapping[str, str]) -> State:
        drafter = launch.get(n.DRAFT_MODEL)
        draft = None if drafter is None or model is _UNKNOWN else self.model_of(drafter)
        return State(launch, model=model, draft=draft, env=env, searching=True)

    def _judged(self, values: Assignment, beside: Mapping[str, Any], model: Model) -> Part:
        """Fold values that are launched with others, and say whether the table excludes them together."""
        algorithm = n.algorithm_of({**beside, **values})
        untouched: dict[str, Any] = {}
        seen = dict(values)
        if algorithm is None:
            seen.pop(n.ALGORITHM, None)
            untouched = {n.ALGORITHM: n.NONE} if n.ALGORITHM in values else {}
        if algorithm not in n.RULED:  # what belongs to speculation is dropped with it, or passes through as written
            beside = {name: value for name, value in beside.items() if not is_speculative(name)}
            if algorithm is not None:
                untouched = {name: value for name, value in seen.items() if is_speculative(name)}
                seen = {name: value for name, value in seen.items() if name not in untouched}
        folded_by = self._fold(seen, beside)
        illegal = self._illegal(self._state({**beside, **seen}, model, self.env))
        return Part(Candidate.of({**seen, **untouched}).items, folded_by, illegal)

    def _fold(self, seen: dict[str, Any], beside: Mapping[str, Any]) -> tuple[str, ...]:
        """Rewrite `seen` in place; return the rules that changed it."""
        state = State({**beside, **seen}, model=_UNKNOWN, searching=True)
        by = []
        for rule in self._folding:
            if not rule.when(state):
                continue
            changed = [name for name in seen if rule.takes_away(name)]
            for name in changed:
                del seen[name]
                state.values.pop(name)
            for name, value in rule.sets(state).items() if rule.sets is not None else ():
                if name in seen or (name == n.DRAFT_TOKENS and n.STEPS in seen):
                    seen[name] = value
                    changed.append(name)
            rewrite(state, rule)
            if changed:
                by.append(rule.name)
        return tuple(by)

    def _illegal(self, state: State) -> Illegal | None:
        for rule in self._pipeline:
            if rule.when(state):
                if rule.excludes:
                    words = (rule.message(state).strip(), rule.way_out(state), f"({rule.source})")
                    return Illegal(rule.name, "; ".join(word for word in words[:2] if word) + f" {words[2]}")
                rewrite(state, rule)
        return None

    @cached_property
    def _target(self) -> Model:
        return self.model_of(self.base.get(n.MODEL))

    @cached_property
    def _folding(self) -> tuple[Rule, ...]:
        return folding(self.version)

    @cached_property
    def _pipeline(self) -> tuple[Rule, ...]:
        return pipeline(self.version)


def _remembered(known: dict[Any, Part], values: Assignment, key: Any, judge: Callable[[], Part]) -> Part:
    """Return a part that has been judged before, or judge it."""
    try:
        asked = (key, *values.items())
        part = known.get(asked)
    except TypeError:  # a list among the values: not in canonical form yet
        return judge()
    if part is None:
        if len(known) >= REMEMBERED:
            known.clear()
        part = known[asked] = judge()
    return part
