"""What to launch next: legal, canonical, not forbidden, and never launched before."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from spectune.engines.parts import Illegal
from spectune.engines.protocol import Engine
from spectune.errors import SpectuneError
from spectune.sampler_names import GUIDED, check_sampler
from spectune.search.evidence.graph_cover import best_covered
from spectune.search.evidence.noise import scatter_of
from spectune.search.evidence.speeds import together
from spectune.search.guided.enumeration import legal_baselines, legal_candidates
from spectune.search.guided.evidence import Evidence, evidence_of
from spectune.search.proposing.exclusions import Exclusion, drafter_of, excluded, learned
from spectune.search.proposing.first_launches import opening_assignments
from spectune.search.proposing.optuna_draw import memory_study, suggested
from spectune.search.proposing.samplers import STARTUP_LAUNCHES, stock_sampler
from spectune.search.proposing.warm_start import WarmStart
from spectune.search.storage.records import Launch, TrialRecord
from spectune.search.storage.steps import Step
from spectune.space import NUM_DRAFT_TOKENS, Candidate, SearchSpace

if TYPE_CHECKING:
    from spectune.search.guided.guide import Guide
    from spectune.search.guided.stopping import Outlook

DRAWS = 40  # by the sampler, before a candidate is taken at random
RANDOM_DRAWS = 1000  # before all candidates are gone through
OPENING = "the first launch of this algorithm and drafter, with a chain that tells most about it"


@dataclass(frozen=True)
class Proposal:
    """A candidate and one sentence on why it is worth a launch."""

    candidate: Candidate
    why: str


class Proposer:
    """Draws candidates from an Optuna sampler that has seen every record.

    Attributes:
        sampler: Its name.
        warm_start: What an earlier study lends to it.
    """

    def __init__(
        self,
        space: SearchSpace,
        engine: Engine,
        *,
        sampler: str = GUIDED,
        seed: int = 0,
        warm_start: WarmStart | None = None,
    ) -> None:
        """Choose a sampler.

        Args:
            space: What is searched.
            engine: What is launched.
            sampler: What proposes candidates, by name.
            seed: Of its draws.
            warm_start: What an earlier study lends to the guided search.

        Raises:
            SpectuneError: It does not exist, needs what is not installed, or cannot use an earlier study.
        """
        check_sampler(sampler, learns=warm_start is not None)
        self.sampler, self.warm_start = sampler, warm_start
        self._space, self._engine, self._seed = space, engine, seed
        self._latest: tuple[Sequence[TrialRecord], Sequence[Evidence]] = (), ()

    def baseline(self) -> Candidate:
        """Return the no-speculation candidate with the first values of the file that are legal together.

        Raises:
            SpectuneError: When every candidate without speculation is illegal or forbidden.
        """
        if self._baseline is None:
            plain = next(branch for branch in self._space.branches if not branch.speculative)
            first = self._engine.canonical(next(plain.assignments()))
            why = f"; the first of them: {first.reason}" if isinstance(first, Illegal) else ""
            raise SpectuneError(
                f"{self._space.path}: the space has no legal candidate without speculation to compare with{why}"
            )
        return self._baseline

    def baselines(self) -> Sequence[Candidate]:
        """Return every legal candidate without speculation, in the order of the file."""
        return self._baselines

    def legal(self, assignment: dict[str, Any]) -> Candidate | None:
        """Return the canonical candidate of an assignment moved to where it is legal, None when there is none."""
        candidate = self._engine.canonical(dict(self._engine.repaired(assignment)))
        if isinstance(candidate, Illegal) or self._space.forbidden(candidate) is not None:
            return None
        return candidate if self._listed(candidate) else None

    def propose(self, records: Sequence[TrialRecord], running: Sequence[Step] = ()) -> Proposal | None:
        """Return the next candidate; None when every legal one has been launched.

        Args:
            records: All finished launches.
            running: Launches that are being made: none of them again, nor what would tell nothing beside them.
        """
        launches: Sequence[Launch] = (*records, *running)
        seen = {one.candidate.candidate_id for one in launches}
        ruled_out = learned(records)
        offers = self._offers(records, running)
        return next((offer for offer in offers if self._new(offer.candidate, seen, ruled_out)), None)

    def standing(self, records: Sequence[TrialRecord], candidate: Candidate) -> float | None:
        """Return what the guided search believes of a launched candidate, as mean log of the objectives.

        One launch is lucky, another is not: what similar candidates measured says which. None for other samplers.
        """
        return self._guide.standing(self._evidence(records), candidate) if self.sampler == GUIDED else None

    def outlook(self, records: Sequence[TrialRecord]) -> Outlook | None:
        """Return what the guided search expects of going on; None for other samplers, and while it cannot tell."""
        if self.sampler != GUIDED or self._pending(records):
            return None
        return self._guide.outlook(self._evidence(records))

    def paying(self, records: Sequence[TrialRecord]) -> float | None:
        """Return the chance that speculation pays, as the guided search sees it; None where it cannot tell."""
        if self.sampler != GUIDED:
            return None
        return self._guide.paying(self._evidence(records), scatter_of(records, together(self._space)))

    @property
    def known_start_s(self) -> float | None:
        """Seconds that a launch needs to start, where the engine knows without one."""
        return self._engine.known_start_s

    def all(self) -> Iterator[Candidate]:
        """Yield every legal candidate once, lazily."""
        return legal_candidates(self._space, self._engine)

    def openings(self, beside: Candidate | None = None) -> Iterator[Candidate]:
        """Yield the first launch of every algorithm and drafter, as far as it is legal, with a candidate's settings.

        But for CUDA graphs, which cover as many levels as they can: outside them no speculation shows what it can do.
        """
        return filter(None, map(self._covered, opening_assignments(self._space, beside)))

    def _pending(self, records: Sequence[TrialRecord]) -> list[Candidate]:
        """Return the openings that are still to be made, beside the first baseline that ran.

        With an earlier study, those of drafters not heard of.
        """
        launched, ruled_out = {record.candidate for record in records}, learned(records)
        ran = [record.candidate for record in records if record.failure is None]
        heard = {drafter_of(candidate) for candidate in ran}
        beside = next((candidate for candidate in ran if not candidate.speculative), None)
        pending = [
            candidate
            for candidate in self.openings(beside)
            if candidate not in launched
            and drafter_of(candidate) not in heard
            and excluded(candidate, ruled_out) is None
        ]
        if pending and self.warm_start is not None:
            known = self._guide.drafters_heard(self._evidence(records))
            pending = [candidate for candidate in pending if self._guide.chart.setting(candidate).drafter not in known]
        return pending

    def _evidence(self, records: Sequence[TrialRecord]) -> Sequence[Evidence]:
        """Return the evidence of launches; the last is kept, since every finalist is asked for in a long study.

        What says the same as before is the same object: the guide compares all of it with what it knows, often.
        """
        known, before = tuple(records), self._latest[1]
        if self._latest[0] != known:
            found = evidence_of(known, self._space)
            same = [old if old == new else new for old, new in zip(before, found, strict=False)]
            self._latest = known, [*same, *found[len(same) :]]
        return self._latest[1]

    def _covered(self, assignment: Mapping[str, Any]) -> Candidate | None:
        """Return the legal candidate of an assignment with the graph settings that cover most levels."""
        return next(filter(None, map(self.legal, best_covered(assignment, self._space))), None)

    def _listed(self, candidate: Candidate) -> bool:
        """Whether the file lists its N, which may have been moved; that of a chain is S + 1 whatever is listed."""
        tokens = candidate.num_draft_tokens
        if tokens is None or (candidate.eagle_topk or 1) == 1 or NUM_DRAFT_TOKENS not in self._space.parameters:
            return True
        return self._space.parameters[NUM_DRAFT_TOKENS].allows(tokens)

    def _offers(self, records: Sequence[TrialRecord], running: Sequence[Step]) -> Iterator[Proposal]:
        """Yield what might be launched next, the best first, whether or not it has been launched or is excluded."""
        yield from (Proposal(candidate, OPENING) for candidate in self._pending(records))
        if self.sampler == GUIDED:
            yield from self._advised(records, running)
        else:
            yield from self._drawn(records, running)
            yield from self._any(len(records) + len(running))

    def _advised(self, records: Sequence[TrialRecord], running: Sequence[Step]) -> Iterator[Proposal]:
        """Ask the guide itself, whose advice as an Optuna sampler is the same."""
        evidence = self._evidence(records)
        elsewhere = [Evidence(step.candidate, None) for step in running]
        for _ in range(DRAWS):
            advice = self._guide.propose(evidence, elsewhere)
            if advice is None:  # nothing is left that is worth a launch
                return
            yield Proposal(advice.candidate, advice.why)
            self._guide.refuse(advice.candidate)  # or it would be advised again

    def _drawn(self, records: Sequence[TrialRecord], running: Sequence[Step]) -> Iterator[Proposal]:
        """Let a stock sampler draw."""
        launches = len(records) + len(running)
        # Seeded by how much is known, so that a resumed study goes on as the uninterrupted one would.
        sampler = stock_sampler(self.sampler, self._space, seed=self._seed + launches)
        study = memory_study(records, self._space, sampler, running)
        for _ in range(DRAWS):
            if (candidate := self.legal(suggested(study.ask(), self._space))) is not None:
                yield Proposal(candidate, self._why(launches))

    def _new(self, candidate: Candidate, seen: AbstractSet[str], ruled_out: Sequence[Exclusion]) -> bool:
        """Whether the search may launch a candidate.

        The plan tunes the no-speculation branch, where there are two; the guided search sees both at once.
        """
        mine = candidate.speculative or self.sampler == GUIDED or not self._space.algorithms
        return mine and candidate.candidate_id not in seen and excluded(candidate, ruled_out) is None

    def _why(self, launches: int) -> str:
        if self.sampler in {"random", "grid", "qmc"} or launches <= STARTUP_LAUNCHES:
            return f"drawn by the sampler {self.sampler} to learn the space"
        return f"most promising by the sampler {self.sampler}"

    @cached_property
    def _baseline(self) -> Candidate | None:
        return next(legal_baselines(self._space, self._engine), None)  # listing all takes long in a large space

    @cached_property
    def _baselines(self) -> Sequence[Candidate]:
        return list(legal_baselines(self._space, self._engine))

    @cached_property
    def _guide(self) -> Guide:
        from spectune.search.guided.guide import Guide

        lent = self.warm_start
        return Guide(
            self._space, self._engine, seed=self._seed,
            borrowed=lent.evidence if lent else (), lender=lent.study if lent else "",
        )  # fmt: skip

    def _any(self, launches: int) -> Iterator[Proposal]:
        """Yield candidates drawn at random, which is quick where the space is large, and then all."""
        why = "not tried yet; the sampler only came back to launched ones"
        rng = random.Random(self._seed + launches)  # noqa: S311 (no secret depends on it)
        parameters = self._space.parameters.values()
        for _ in range(RANDOM_DRAWS):
            drawn = {p.name: p.values[rng.randrange(len(p.values))] for p in parameters}
            if (candidate := self.legal(drawn)) is not None:
                yield Proposal(candidate, why)
        yield from (Proposal(candidate, why) for candidate in self.all())
