"""Which candidates an effect compares: legal ones that differ in a value, and in as little else as that takes.

Not every value can be changed alone. A chain of S steps verifies S + 1 tokens, so its steps take the draft tokens
along; a backend may bring options with it that meant nothing before. What changes together is named, and only
candidates in which the same changes together are compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spectune.engines.parts import Illegal
from spectune.engines.protocol import Engine
from spectune.engines.sglang.rules.folding import nearest_legal
from spectune.space import (
    ALGORITHM,
    EAGLE_TOPK,
    NO_SPECULATION,
    NUM_DRAFT_TOKENS,
    NUM_STEPS,
    Candidate,
    Parameter,
    SearchSpace,
    Value,
)

CONTEXTS = 8  # candidates over which an effect is averaged
MOST_COMPLETIONS = 64  # ways to choose what a value brings along

Changes = Mapping[str, tuple[Value | None, Value | None]]
"""Name → value now and before; None where a candidate does not have it."""


@dataclass(frozen=True)
class Question:
    """A value of a parameter against another.

    Attributes:
        parameter: What is changed.
        speculates: Whether the candidates it is changed in do.
        value: To what.
        against: From what: its value in the best candidate of the branch.
        together: What has to change with it.
        pairs: Candidates with the one and the other, which differ in exactly that.
    """

    parameter: Parameter
    speculates: bool
    value: Value
    against: Value
    together: Changes
    pairs: tuple[tuple[Candidate, Candidate], ...]


def questions(best: Sequence[Candidate], space: SearchSpace, rules: Engine) -> Iterator[Question]:
    """Yield every other value of every searched parameter that a legal neighbour of the best candidate has.

    Args:
        best: The launched candidates, the recommended one first, then the fastest.
        space: Their search space.
        rules: What is legal.
    """
    near = _Neighbourhood(best, space, rules)
    for parameter in space.parameters.values():
        name, speculates = parameter.name, parameter.is_speculative or best[0].speculative
        contexts = [one for one in best if one.speculative is speculates and name in one.values][:CONTEXTS]
        if parameter.is_fixed or not contexts:
            continue
        against = contexts[0].values[name]
        for value in parameter.values:
            if value == against or (name == ALGORITHM and value == NO_SPECULATION):
                continue
            pairs = [pair for one in contexts if (pair := near.pair(one, name, value, against)) is not None]
            if not pairs or pairs[0][1] != contexts[0]:
                continue  # the best candidate has no such neighbour
            changed = _changes(*pairs[0])
            alike = tuple(pair for pair in pairs if _changes(*pair) == changed)
            together = {other: values for other, values in changed.items() if other != name}
            yield Question(parameter, speculates, value, against, together, alike)


@dataclass(frozen=True)
class _Neighbourhood:
    """The legal candidates around the launched ones."""

    launched: Sequence[Candidate]
    space: SearchSpace
    rules: Engine

    def pair(self, candidate: Candidate, name: str, value: Value, against: Value) -> tuple[Candidate, Candidate] | None:
        """Return a candidate with one value and with the other; None where one of them cannot be."""
        one, other = self._with(candidate, name, value), self._with(candidate, name, against)
        return None if one is None or other is None else (one, other)

    def _with(self, candidate: Candidate, name: str, value: Value) -> Candidate | None:
        if candidate.values[name] == value:
            return candidate
        for values in self._completed({**candidate.values, name: value}, name):
            found = self.rules.canonical(nearest_legal(values))
            if not isinstance(found, Illegal) and found.values.get(name) == value and self._listed(found):
                return found
        return None

    def _completed(self, values: dict[str, Value], name: str) -> Iterator[dict[str, Value]]:
        """Yield the values with all that goes with them, what was launched with such a value first."""
        speculates = values.get(ALGORITHM, NO_SPECULATION) != NO_SPECULATION
        branch = next((b for b in self.space.branches if b.speculative is speculates), None)
        missing = [p for p in branch.parameters if p.name not in values] if branch else []
        alike = [one.values for one in self.launched if one.values.get(name) == values[name]]
        choices = [_in_order(p, (one[p.name] for one in alike if p.name in one)) for p in missing]
        for chosen in itertools.islice(itertools.product(*choices), MOST_COMPLETIONS):
            whole = values | dict(zip((p.name for p in missing), chosen, strict=True))
            yield whole
            if name in {NUM_STEPS, EAGLE_TOPK}:
                yield from ({**whole, NUM_DRAFT_TOKENS: tokens} for tokens in self._nearest_tokens(whole))

    def _nearest_tokens(self, values: Mapping[str, Value]) -> list[Value]:
        """Return the counts of draft tokens that the space lists, the nearest first."""
        known, tokens = self.space.parameters.get(NUM_DRAFT_TOKENS), values.get(NUM_DRAFT_TOKENS)
        if known is None or not isinstance(tokens, int):
            return []
        return sorted(known.values, key=lambda value: abs(int(str(value)) - tokens))

    def _listed(self, candidate: Candidate) -> bool:
        """Whether a candidate is one of the space; the tokens of a chain follow from its steps, whatever is listed."""
        chain = (candidate.eagle_topk or 1) == 1
        free = {ALGORITHM} | ({NUM_DRAFT_TOKENS} if chain else set())
        known = self.space.parameters
        listed = all(known[name].allows(value) for name, value in candidate.items if name in known and name not in free)
        return listed and self.space.forbidden(candidate) is None


def _in_order(parameter: Parameter, seen: Iterable[Value]) -> list[Value]:
    return list(dict.fromkeys([*seen, *parameter.values]))


def _changes(one: Candidate, other: Candidate) -> dict[str, tuple[Value | None, Value | None]]:
    names = sorted({*one.values, *other.values})
    both = {name: (one.values.get(name), other.values.get(name)) for name in names}
    return {name: values for name, values in both.items() if values[0] != values[1]}
