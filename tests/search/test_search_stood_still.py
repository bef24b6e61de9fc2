"""A launch whose client stood still while it was measured says nothing of the engine."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from search_simulated import Silent, chain, write

from spectune.bench.course import GiveUp
from spectune.bench.level import LevelPlan, LevelRun, StopReason
from spectune.engines.open import open_engine
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.search import Role, Step
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.launched import Says, TrialFailed
from spectune.search.launch.level_measuring import MOST_BLIND, Levels
from spectune.search.launch.traffic import open_prompts
from spectune.search.launch.virtual import VirtualLaunch
from spectune.serving import FailureClass
from spectune.space import load_space


class StoodStill(VirtualLaunch):
    """In virtual time nobody is stopped, so the part of a level that went by meanwhile is added here."""

    part = 0.0
    reason: StopReason = "time"

    async def measure(
        self, plan: LevelPlan, prompts: PromptFeed, says: Says, give_up: GiveUp | None = None
    ) -> LevelRun:
        run = await super().measure(plan, prompts, says, give_up)
        assert run.measured_s is not None
        blind_s = self.part * (run.measured_s[1] - run.measured_s[0])
        return replace(run, blind_s=blind_s, stop_reason=self.reason)


def measured(file: Path, part: float, reason: StopReason = "time") -> Levels:
    space = load_space(file)
    engine = open_engine(space)
    assert isinstance(engine, SimulatedEngine)
    feed = PromptFeed(open_prompts(space), engine.renderer(), chat_template=False, output_tokens=48)
    step = Step(0, Role.SEARCH, chain(3), "for a test")
    levels = Levels(step, space, engine, feed, Silent(), None, hang_s=45.0, keep=lambda *_: None)
    launched = StoodStill(engine.profile, engine.command(chain(3), host="127.0.0.1", port=30000), {})
    launched.part, launched.reason = part, reason

    async def made() -> None:
        await launched.start(60.0, lambda _: None)
        await levels.measure(launched, space.workload.levels[0], None)

    asyncio.run(made())
    return levels


@pytest.mark.parametrize("reason", ["time", "hang"])
def test_it_fails_through_no_fault_of_its_candidate(tmp_path: Path, reason: StopReason) -> None:
    with pytest.raises(TrialFailed, match=r"spectune itself stood still for .* while c1 was measured") as failed:
        measured(write(tmp_path), 1.5 * MOST_BLIND, reason)
    assert failed.value.failure.failure_class is FailureClass.ENVIRONMENT
    assert not failed.value.failure.failure_class.blames_candidate


def test_a_moment_is_no_matter(tmp_path: Path) -> None:
    assert len(measured(write(tmp_path), 0.5 * MOST_BLIND).measured) == 1
