"""A whole study in virtual time and in memory: the plan, the launches and the answer, without a file."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from functools import cached_property
from pathlib import Path

from spectune.analysis.measurement import LevelMeasurement
from spectune.bench.prompt_stream import PromptStream
from spectune.engines.open import open_engine
from spectune.engines.protocol import Occasion
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.engines.simulated.profile import Profile
from spectune.search import Progress, Proposer, Step, Stop, TrialRecord
from spectune.search.launch.canary import SAMPLED, Canaries
from spectune.search.launch.canary import SEED as CANARY_SEED
from spectune.search.launch.dominated import may_end
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.traffic import open_prompts
from spectune.search.launch.trial import Trial
from spectune.search.planning.budget import spent_s
from spectune.search.planning.plan import next_step
from spectune.space import SearchSpace


class Silent:
    """A watcher that looks away."""

    def planned(self, progress: Progress) -> None:
        """Look away."""

    def launching(self, step: Step) -> None:
        """Look away."""

    def says(self, text: str) -> None:
        """Look away."""

    def measured(self, level: LevelMeasurement) -> None:
        """Look away."""

    def finished(self, record: TrialRecord) -> None:
        """Look away."""

    def notes(self, text: str) -> None:
        """Look away."""


@dataclasses.dataclass(frozen=True)
class Laboratory:
    """A space on one profile, ready for studies that differ in nothing but their seed."""

    space: SearchSpace
    profile: Profile

    @cached_property
    def engine(self) -> SimulatedEngine:
        """The simulated engine with this profile."""
        section = self.space.engine.simulated(str(self.profile.path.resolve()), virtual=True)
        engine = open_engine(self.space.with_engine(section))
        assert isinstance(engine, SimulatedEngine)
        return dataclasses.replace(engine, profile=self.profile)

    def feed(self) -> PromptFeed:
        """Return the prompts of a study."""
        section = self.space.workload
        return PromptFeed(
            open_prompts(self.space), self.engine.renderer(),
            chat_template=section.chat_template, output_tokens=section.output_tokens, start=0,
        )  # fmt: skip

    def study(self, seed: int) -> list[TrialRecord]:
        """Return the launches of one study.

        Args:
            seed: Of the machine's noise and of the sampler.
        """
        file = self.profile.file.model_copy(update={"seed": seed})
        engine = dataclasses.replace(self.engine, profile=Profile(self.profile.path, file))
        proposer = Proposer(self.space, engine, seed=seed)
        feed = self.feed()
        asked = PromptStream(feed.workload, seed=CANARY_SEED).take(SAMPLED)
        canaries = Canaries(asked, engine, engine.renderer(), chat_template=self.space.workload.chat_template)
        records: list[TrialRecord] = []
        with tempfile.TemporaryDirectory() as folder:  # faults that fire a few times in a study count there
            while isinstance(step := next_step(records, [], self.space, proposer), Step):
                occasion = Occasion(len(records), spent_s(records) / 3600, Path(folder))
                dominated = may_end(step, self.space, records)
                trial = Trial(step, None, self.space, engine, feed, canaries, Silent(), occasion, dominated)
                records.append(asyncio.run(trial.run()))
        assert isinstance(step, Stop)
        return records
