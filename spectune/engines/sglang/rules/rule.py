"""One rule: when it applies, what SGLang then does, and how that is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from spectune.engines.sglang.rules.state import State
from spectune.engines.sglang.versions.history import FIRST_VERSION, older_than

Text = str | Callable[[State], str]
Tested = Literal["resolver run", "launched", "read"]
RAN: Tested = "resolver run"
READ: Tested = "read"
LAUNCHED: Tested = "launched"

Kind = Literal[
    "reject",  # the resolver refuses the launch
    "die",  # it resolves, and dies or serves nonsense later
    "rewrite",  # SGLang replaces or fills in values
    "unwise",  # it runs, hardly as meant
    "implicit",  # it runs on a default that depends on what else was given; a search passes it instead
    "pointless",  # it runs, but cannot be what a search looks for
    "note",  # worth knowing
    "same",  # arguments that make no difference here
]


@dataclass(frozen=True)
class Rule:
    """A line of the table.

    Attributes:
        name: Short and stable, for counting and reports.
        kind: What SGLang does.
        when: Whether it applies, of the values resolved so far.
        says: SGLang's words for a rejection, spectune's otherwise; empty for a default nobody needs to hear of.
        source: Section of the facts (R-numbers are theirs) or file:line of SGLang.
        tested: How it is known.
        sets: Values after a rewrite; a value of None takes the argument away.
        drops: Arguments that make no difference (`same`); one that ends in `*` stands for all that begin so.
        advice: The way out.
        since: First SGLang version it is known for.
        until: Last one; None while it still holds.
        gist: What it says of any launch, where `says` needs one.
        canonical: Whether a search writes candidates as this rule rewrites them.
    """

    name: str
    kind: Kind
    when: Callable[[State], bool]
    says: Text
    source: str
    tested: Tested
    sets: Callable[[State], Mapping[str, Any]] | None = None
    drops: frozenset[str] = frozenset()
    advice: Text = ""
    since: str = FIRST_VERSION
    until: str | None = None
    canonical: bool = False
    gist: str = ""

    def __post_init__(self) -> None:
        assert (self.sets is not None) == (self.kind == "rewrite"), self.name
        assert bool(self.drops) == (self.kind == "same"), self.name

    def holds_in(self, version: str) -> bool:
        """Whether the rule is known for a version of SGLang."""
        return not older_than(version, self.since) and (self.until is None or not older_than(self.until, version))

    def message(self, state: State) -> str:
        """Return what it says of a launch."""
        return self.says if isinstance(self.says, str) else self.says(state)

    @property
    def general(self) -> str:
        """What it says whatever the launch; empty where that depends on it."""
        return self.says if isinstance(self.says, str) else self.gist

    def way_out(self, state: State) -> str:
        """Return its advice for a launch."""
        return self.advice if isinstance(self.advice, str) else self.advice(state)

    def takes_away(self, name: str) -> bool:
        """Whether it is an equivalence that drops an argument."""
        return name in self.drops or name.startswith(self._prefixes)

    @cached_property
    def _prefixes(self) -> tuple[str, ...]:
        return tuple(name[:-1] for name in self.drops if name.endswith("*"))

    @property
    def excludes(self) -> bool:
        """Whether a search never launches where it applies."""
        return self.kind in {"reject", "die", "implicit", "pointless"}
