"""What the `search` section varies: names with the values each may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from spectune.space.environment import environment_value_problem
from spectune.space.names import ALGORITHM, ENV_PREFIX, NO_SPECULATION, hint, is_environment, is_speculative
from spectune.space.values import UNSET, Value, canonical, canonical_json, text_of

MAX_VALUES = 100_000

_RANGE_KEYS = ("from", "to", "step")


@dataclass(frozen=True)
class IntegerRange:
    """Whole numbers from `low` to `high`, both included, `step` apart."""

    low: int
    high: int
    step: int = 1

    def __post_init__(self) -> None:
        assert self.low <= self.high
        assert self.step >= 1
        assert (self.high - self.low) % self.step == 0, "the last value is one that is reached"

    @property
    def values(self) -> range:
        """All values, lazily."""
        return range(self.low, self.high + 1, self.step)


@dataclass(frozen=True)
class Parameter:
    """One name of the search with all its values; a single value is a fixed one.

    Attributes:
        name: An engine argument without dashes, or `env.NAME`.
        domain: A tuple of categories, or a range of whole numbers.
        line: Where it stands in the file.
    """

    name: str
    domain: tuple[Value, ...] | IntegerRange
    line: int | None = field(default=None, compare=False)

    @property
    def values(self) -> Sequence[Value]:
        """All values in the order of the file."""
        return self.domain.values if isinstance(self.domain, IntegerRange) else self.domain

    @property
    def is_fixed(self) -> bool:
        """Whether there is nothing to choose."""
        return len(self.values) == 1

    @property
    def is_environment(self) -> bool:
        """Whether it is a variable of the workers' environment."""
        return is_environment(self.name)

    @property
    def is_speculative(self) -> bool:
        """Whether it exists only in the speculation branch."""
        return is_speculative(self.name)

    def allows(self, value: Value) -> bool:
        """Whether `value` is one of the values, `true` and `1` being different ones."""
        if isinstance(self.domain, IntegerRange):
            return isinstance(value, int) and not isinstance(value, bool) and value in self.domain.values
        return canonical_json(value) in self._keys

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(canonical_json(value) for value in self.values)

    def to_plain(self) -> object:
        """Return what would stand in a YAML file."""
        if isinstance(self.domain, IntegerRange):
            plain = {"from": self.domain.low, "to": self.domain.high}
            return plain if self.domain.step == 1 else {**plain, "step": self.domain.step}
        items = [list(value) if isinstance(value, tuple) else value for value in self.domain]
        return items[0] if len(items) == 1 and not isinstance(items[0], list) else items


def parse_parameter(name: str, raw: object, line: int | None = None) -> Parameter:
    """Read one entry of the `search` section.

    Args:
        name: Its key, already known to be well-formed.
        raw: A value, a list of values, or `{from, to, step?}`. Values of `env.NAME` are their text as written.
        line: Where it stands.

    Raises:
        ValueError: No values, a value twice, a range that is empty or not of whole numbers.
    """
    if isinstance(raw, Mapping):
        if name == ALGORITHM:
            raise ValueError(f"{ALGORITHM} takes names, not a range")
        numbers = _parse_range(raw)
        return Parameter(name, tuple(map(str, numbers.values)) if is_environment(name) else numbers, line)
    choices = _parse_choices(raw)
    if name == ALGORITHM:
        choices = _algorithms(choices)
    if is_environment(name):
        choices = tuple(text_of(choice) for choice in choices)
        for choice in choices:
            if (problem := environment_value_problem(environment_name(name), text_of(choice))) is not None:
                raise ValueError(problem)
    elif UNSET in choices:
        raise ValueError(
            f"{UNSET} is a value of env.NAME parameters only; the engine is told every argument explicitly"
        )
    _refuse_duplicates(choices)
    return Parameter(name, choices, line)


def with_no_speculation(parameter: Parameter) -> Parameter:
    """Return the algorithm parameter with the no-speculation branch as its first value: it is always included."""
    assert parameter.name == ALGORITHM
    others = tuple(choice for choice in parameter.values if choice != NO_SPECULATION)
    return Parameter(ALGORITHM, (NO_SPECULATION, *others), parameter.line)


def _parse_choices(raw: object) -> tuple[Value, ...]:
    if not isinstance(raw, list | tuple):
        return (canonical(raw),)
    if not raw:
        raise ValueError("an empty list leaves nothing to choose from; give at least one value")
    return tuple(canonical(item) for item in raw)


def _algorithms(choices: tuple[Value, ...]) -> tuple[Value, ...]:
    for choice in choices:
        if not isinstance(choice, str):
            message = f"an algorithm is a name, but got {text_of(choice)}; no speculation is written none"
            raise ValueError(message)  # noqa: TRY004  # a bad value in a file
    return tuple(NO_SPECULATION if str(choice).lower() == NO_SPECULATION else choice for choice in choices)


def _refuse_duplicates(choices: tuple[Value, ...]) -> None:
    seen: set[str] = set()
    for choice in choices:
        key = canonical_json(choice)
        if key in seen:
            raise ValueError(f"the value {text_of(choice)} stands twice")
        seen.add(key)


def _parse_range(raw: Mapping[str, object]) -> IntegerRange:
    for key in raw:
        if key not in _RANGE_KEYS:
            raise ValueError(f"'{key}' is not a key of a range{hint(key, _RANGE_KEYS)}")
    numbers: dict[str, int] = {"step": 1}
    for key in ("from", "to"):
        if key not in raw:
            raise ValueError(f"a range needs 'from' and 'to', but '{key}' is missing")
    for key, number in raw.items():
        if isinstance(number, bool) or not isinstance(number, int):
            message = f"'{key}' must be a whole number, but got {number!r}; for other values give a list"
            raise ValueError(message)  # noqa: TRY004  # a bad value in a file
        numbers[key] = number
    low, high, step = numbers["from"], numbers["to"], numbers["step"]
    if step < 1:
        raise ValueError(f"'step' must be at least 1, but got {step}")
    if low > high:
        raise ValueError(f"the range is empty: from {low} is more than to {high}")
    count = (high - low) // step + 1
    if count > MAX_VALUES:
        raise ValueError(f"the range has {count} values, but at most {MAX_VALUES} are allowed; give a step")
    return IntegerRange(low, low + (count - 1) * step, step)


def environment_name(name: str) -> str:
    """Return `NAME` of `env.NAME`."""
    return name.removeprefix(ENV_PREFIX)
