"""Where spectune's rules and SGLang's own resolver say different things of the same launch."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from spectune.engines.address import DEFAULT_PORT, LOOPBACK
from spectune.engines.parts import Illegal
from spectune.engines.protocol import Mismatch
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.referee import Referee, Verdict
from spectune.engines.sglang.rules.table import RULES
from spectune.space import Candidate, SearchSpace

# Rules about what dies after the resolver, or starts but is of no use: its consent says nothing there.
BEYOND_THE_RESOLVER = frozenset(rule.name for rule in RULES if rule.excludes and rule.kind != "reject")
NOT_A_LAUNCH = "version"  # what the installed version cannot be told, it cannot be asked either


@dataclass(frozen=True)
class Question:
    """One launch to be judged.

    Attributes:
        candidate: What would be launched.
        excluded: Why spectune would not; None when it would.
    """

    candidate: Candidate
    excluded: Illegal | None = None


@dataclass(frozen=True)
class Outcome:
    """A question with SGLang's answer.

    Attributes:
        question: What was asked.
        verdict: What SGLang said.
        differences: Fields of a launch both accept that SGLang would resolve to something else.
    """

    question: Question
    verdict: Verdict
    differences: tuple[Mismatch, ...] = ()

    @property
    def beyond(self) -> bool:
        """Whether spectune excludes what dies only after the resolver has accepted it."""
        excluded = self.question.excluded
        return self.verdict.accepted and excluded is not None and excluded.rule in BEYOND_THE_RESOLVER

    @property
    def agreed(self) -> bool:
        """Whether SGLang says what spectune's rules say, or cannot know."""
        if self.question.excluded is not None:
            return self.beyond or not self.verdict.accepted
        return self.verdict.accepted and not self.differences


@dataclass
class Sample:
    """Questions on a space, the legal ones and those of every rule.

    Attributes:
        legal: Candidates spectune would launch.
        excluded: Rule → questions on what it excludes.
        counts: Rule → combinations it excludes in the whole space; "" counts the legal candidates.
    """

    legal: list[Question] = field(default_factory=list)
    excluded: dict[str, list[Question]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def questions(self) -> Iterator[Question]:
        """Yield every question."""
        yield from self.legal
        yield from itertools.chain.from_iterable(self.excluded.values())

    def __len__(self) -> int:
        return len(self.legal) + sum(map(len, self.excluded.values()))


def draw(space: SearchSpace, engine: SGLangEngine, *, legal: int, each_rule: int, seed: int = 0) -> Sample:
    """Return all candidates of a space, or an even sample where there are more.

    Args:
        space: The space.
        engine: Its engine.
        legal: Most legal candidates.
        each_rule: Most excluded combinations of one rule.
        seed: Of the sample.
    """
    sample, chance, seen = Sample(), random.Random(seed), set()  # noqa: S311  # a sample, not a secret
    for assignment in itertools.chain.from_iterable(branch.assignments() for branch in space.branches):
        found = engine.canonical(assignment)
        if isinstance(found, Illegal):
            rule, kept = found.rule, sample.excluded.setdefault(found.rule, [])
            most = 0 if rule == NOT_A_LAUNCH else each_rule
        elif found.items in seen or space.forbidden(found) is not None:
            continue
        else:
            seen.add(found.items)
            rule, kept, most = "", sample.legal, legal
        sample.counts[rule] += 1
        place = len(kept) if len(kept) < most else chance.randrange(sample.counts[rule])
        if place < most:  # a reservoir: each that came so far is kept with the same chance
            question = Question(Candidate.of(assignment), found) if isinstance(found, Illegal) else Question(found)
            kept[place : place + 1] = [question]
    return sample


def ask(question: Question, engine: SGLangEngine, referee: Referee) -> Outcome:
    """Have the referee judge one question.

    Raises:
        SpectuneError: The referee is gone.
    """
    verdict = referee.judge(engine.command(question.candidate, host=LOOPBACK, port=DEFAULT_PORT))
    if question.excluded is not None or not verdict.accepted:
        return Outcome(question, verdict)
    return Outcome(question, verdict, tuple(engine.mismatches(question.candidate, verdict.resolved)))
