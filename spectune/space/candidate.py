"""One complete assignment of a search space, in a form that is the same however it came about."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from spectune.errors import SpectuneError
from spectune.space.labels import label_of
from spectune.space.names import ALGORITHM, DRAFTER, EAGLE_TOPK, NO_SPECULATION, NUM_DRAFT_TOKENS, NUM_STEPS
from spectune.space.names import is_environment as _is_environment
from spectune.space.parameters import environment_name
from spectune.space.values import UNSET, Value, canonical, canonical_json, text_of
from spectune.typed_json import whole_number

_ID_DIGITS = 12


@dataclass(frozen=True, eq=False)
class Candidate:
    """Names and values of one configuration; equal when the ids are.

    Attributes:
        items: Sorted by name; build with `of`.
    """

    items: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Candidate:
        """Return the candidate of `values`, in any order, lists or tuples.

        Raises:
            ValueError: A value is null, not finite, empty or nested.
        """
        return cls(tuple(sorted((name, _canonical(name, value)) for name, value in values.items())))

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Name → value, sorted by name; `unset` for variables that must be absent."""
        return MappingProxyType(dict(self.items))

    @cached_property
    def candidate_id(self) -> str:
        """12 hexadecimal digits that depend on nothing but names and values."""
        return hashlib.sha256(canonical_json(dict(self.items)).encode()).hexdigest()[:_ID_DIGITS]

    def __eq__(self, other: object) -> bool:
        return self.candidate_id == other.candidate_id if isinstance(other, Candidate) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.candidate_id)

    @property
    def algorithm(self) -> str:
        """The speculative algorithm, `none` without speculation."""
        return str(self.values.get(ALGORITHM, NO_SPECULATION))

    @property
    def speculative(self) -> bool:
        """Whether the engine speculates."""
        return self.algorithm != NO_SPECULATION

    @property
    def num_steps(self) -> int | None:
        """S, draft steps per cycle."""
        return self._integer(NUM_STEPS)

    @property
    def eagle_topk(self) -> int | None:
        """K, branches per draft step."""
        return self._integer(EAGLE_TOPK)

    @property
    def num_draft_tokens(self) -> int | None:
        """N, tokens verified per request and cycle."""
        return self._integer(NUM_DRAFT_TOKENS)

    @property
    def drafter(self) -> str | None:
        """The draft model as named in the space."""
        value = self.values.get(DRAFTER)
        return None if value is None else text_of(value)

    @property
    def arguments(self) -> dict[str, Value]:
        """Engine arguments to pass, without dashes; the algorithm is left out when it is `none`."""
        return {
            name: value
            for name, value in self.items
            if not _is_environment(name) and (name != ALGORITHM or value != NO_SPECULATION)
        }

    @property
    def env(self) -> dict[str, str]:
        """Variables to set in the workers' environment."""
        return {environment_name(n): text_of(v) for n, v in self.items if _is_environment(n) and v != UNSET}

    @property
    def unset_env(self) -> tuple[str, ...]:
        """Variables that must be absent from the workers' environment."""
        return tuple(environment_name(n) for n, v in self.items if _is_environment(n) and v == UNSET)

    @property
    def label(self) -> str:
        """A short name for people, such as `EAGLE3 strong 3,1,4 · graphs 1-8`; not unique."""
        return label_of(self.values)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a JSON file."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in self.items}
        return {"candidate_id": self.candidate_id, "values": values}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Candidate:
        """Return what `to_json` wrote.

        Raises:
            SpectuneError: Values are missing or malformed, or do not belong to the id that stands beside them.
        """
        values = data.get("values")
        if not isinstance(values, Mapping):
            raise SpectuneError("a candidate must have a mapping 'values', but got " + repr(values))
        try:
            candidate = cls.of(values)
        except ValueError as error:
            raise SpectuneError(f"a candidate cannot be read: {error}") from error
        claimed = data.get("candidate_id", candidate.candidate_id)
        if claimed != candidate.candidate_id:
            raise SpectuneError(f"candidate {claimed} was changed on disk: its values give {candidate.candidate_id}")
        return candidate

    def _integer(self, name: str) -> int | None:
        return whole_number(self.values.get(name))


def _canonical(name: str, raw: object) -> Value:
    value = canonical(raw)
    if _is_environment(name):
        return text_of(value)
    if name == ALGORITHM and isinstance(value, str) and value.lower() == NO_SPECULATION:
        return NO_SPECULATION
    return value
