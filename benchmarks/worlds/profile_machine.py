"""A profile of the simulated engine as a machine: its closed form, without noise and without a process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from benchmarks.worlds.world import PROMPT_TOKENS, LevelTruth, Outcome
from spectune.engines.protocol import Engine
from spectune.engines.simulated import acceptance, cost_model
from spectune.engines.simulated.command import CommandRefused, read_command
from spectune.engines.simulated.faults import DIES_LOADING, FaultPlan
from spectune.engines.simulated.profile import Profile
from spectune.engines.simulated.setup import Setup
from spectune.serving import FailureClass
from spectune.space import Candidate, SearchSpace

DRAFT_FIELDS = ("num_steps", "eagle_topk", "num_draft_tokens")
CLASSES = {
    "oom": FailureClass.MEMORY, "nccl": FailureClass.NCCL, "unsupported": FailureClass.UNSUPPORTED,
    "hang": FailureClass.HANG,
}  # fmt: skip


class ProfileMachine:
    """The machine of a profile.

    The engine's rules resolve one launch per surrounding of the drafts; S, K and N, which canonical candidates state
    exactly, are then put into its place. `check` compares the result with the whole way through the command line.
    """

    def __init__(self, profile: Profile, space: SearchSpace, engine: Engine) -> None:
        self._profile, self._space, self._engine = profile, space, engine
        self._setup = lru_cache(maxsize=None)(self._resolved)
        self._work = lru_cache(maxsize=None)(self._computed)

    @property
    def name(self) -> str:
        """The profile's."""
        return self._profile.name

    @property
    def failure_regions(self) -> int:
        """Faults of the profile, and the memory of its graphs."""
        return len(self._profile.faults) + 1

    def outcome(self, candidate: Candidate) -> Outcome:
        """Return the closed form of a launch."""
        setup, doomed = self._placed(candidate)
        failure = FaultPlan.of(self._profile, setup, {}, DIES_LOADING if doomed else None).first_decisive
        if failure is not None:
            return Outcome(failure=CLASSES.get(failure.kind, FailureClass.CRASH))
        effects = self._profile.factor(setup.values)
        plain = replace(setup, values={}, mem_fraction=0.0, ranks=0)
        levels = {}
        for level in self._space.workload.levels:
            survival, cycle, running = self._work(_Key(plain), level.concurrency)
            levels[level.name] = LevelTruth(survival, cycle * effects, running)
        return Outcome(levels)

    def check(self, candidates: Iterable[Candidate]) -> None:
        """Compare the short way with the whole way through the command line and the engine's rules."""
        for candidate in candidates:
            command = self._engine.command(candidate, host="127.0.0.1", port=30000)
            whole = read_command(command.argv, self._profile, command.environment({}), 0).setup
            assert whole == self._placed(candidate)[0], f"the short way resolves {candidate.label} differently"

    def _placed(self, candidate: Candidate) -> tuple[Setup, bool]:
        values = candidate.values
        if not candidate.speculative:
            return self._setup(candidate.items)
        draft: dict[str, Any] = {f: values.get(f"speculative-{f.replace('_', '-')}") for f in DRAFT_FIELDS}
        tree = draft["eagle_topk"] not in {None, 1}
        stand_in = {"num_steps": 2, "eagle_topk": 2 if tree else 1, "num_draft_tokens": 4 if tree else 3}
        rest = {
            n: v for n, v in candidate.items if n.removeprefix("speculative-").replace("-", "_") not in DRAFT_FIELDS
        }
        rest |= {f"speculative-{f.replace('_', '-')}": v for f, v in stand_in.items()}
        setup, doomed = self._setup(tuple(sorted(rest.items())))
        draft_values = {f"speculative-{f.replace('_', '-')}": v for f, v in draft.items()}
        return replace(setup, **draft, values={**setup.values, **draft_values}), doomed

    def _resolved(self, items: tuple[tuple[str, Any], ...]) -> tuple[Setup, bool]:
        command = self._engine.command(Candidate(items), host="127.0.0.1", port=30000)
        try:
            read = read_command(command.argv, self._profile, command.environment({}), 0)
        except CommandRefused:
            raise AssertionError(f"a legal candidate is refused: {dict(items)}") from None
        return read.setup, read.doom is not None

    def _computed(self, key: _Key, concurrency: int) -> tuple[tuple[float, ...], float, int]:
        setup, file = key.setup, self._profile.file
        running = min(concurrency, setup.max_running)
        context = PROMPT_TOKENS + self._space.workload.output_tokens // 2
        cycle = cost_model.cycle_ms(file, setup, running, running * context / 1000)
        if not setup.speculative:
            return (), cycle, running
        table = file.acceptance
        rows = [
            acceptance.survival(
                setup,
                acceptance.position_probabilities(table, setup.drafter, name, context, setup.depth),
                acceptance.branching_of(table, setup.drafter),
            )
            for name in acceptance.MIXED_CLASSES
        ]
        return tuple(sum(column) / len(rows) for column in zip(*rows, strict=True)), cycle, running


class _Key:
    """A setup by what its work depends on."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._key = (
            setup.algorithm, setup.num_steps, setup.eagle_topk, setup.num_draft_tokens, setup.drafter, setup.captured,
            setup.max_running,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._key == other._key
