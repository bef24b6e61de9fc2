"""A few launches beside a study: an exported launch and the best baseline in turns, against what is on record.

They are made as every trial is, supervised, read back, asked the canaries, but in a folder of their own below
`checks/`: the study never counts them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import fmean

from spectune import files
from spectune.analysis.comparison import LaunchSpeed, compare, mean_speed
from spectune.analysis.estimate import Estimate
from spectune.analysis.holding import Held
from spectune.engines.protocol import Engine, Occasion
from spectune.engines.simulated.engine import PROFILE_FILE
from spectune.errors import SpectuneError
from spectune.search.evidence.noise import noise_of
from spectune.search.evidence.outcome import TOGETHER, Evidence
from spectune.search.evidence.recorded import pooled_noise
from spectune.search.evidence.speeds import Speed, of_level, speeds, together
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.traffic import open_prompts
from spectune.search.launch.trial import Trial
from spectune.search.planning.budget import spent_s
from spectune.search.planning.prospect import Progress
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.kept_prompts import refuse_other_prompts
from spectune.search.storage.records import Status, TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.search.study import study_canaries
from spectune.search.watcher import Watcher
from spectune.space import Candidate, SearchSpace

CHECKS = "checks"


@dataclass(frozen=True)
class Question:
    """What is checked.

    Attributes:
        folder: The study.
        space: Its search space.
        records: All its launches.
        evidence: What they say.
        record: The launch that was exported.
        baseline: The best configuration without speculation.
    """

    folder: StudyFolder
    space: SearchSpace
    records: Sequence[TrialRecord]
    evidence: Evidence
    record: TrialRecord
    baseline: Candidate

    @property
    def order(self) -> list[Candidate]:
        """What is launched: in turns, the second round reversed, so that a drift takes as much from both."""
        launch = self.record.candidate
        return [launch, launch] if launch == self.baseline else [launch, self.baseline, self.baseline, launch]

    def recorded(self, candidate: Candidate) -> list[TrialRecord]:
        """Return the study's launches of a candidate that count, or the exported one where none does."""
        found = [record for record in self.evidence.records if record.candidate == candidate]
        return found or [self.record]


@dataclass(frozen=True)
class LevelHeld:
    """One level, or the objectives together.

    Attributes:
        level: Its name.
        held: The judgement there.
        launch: Figures of the launch then and now, with intervals over launches.
        baseline: Likewise of the baseline; None where the launch is the baseline.
        accept_lengths: Of the launch, then and now.
    """

    level: str
    held: Held
    launch: tuple[Estimate, Estimate]
    baseline: tuple[Estimate, Estimate] | None
    accept_lengths: tuple[float, float]


def with_own_profile(folder: StudyFolder, space: SearchSpace) -> SearchSpace:
    """Return a study's space; the machine of a simulated one is the study's own copy of its profile."""
    if not space.engine.is_simulated:
        return space
    profile = os.path.realpath(folder.root / PROFILE_FILE)
    return space.with_engine(space.engine.model_copy(update={"profile": profile}))


async def check_launch(question: Question, engine: Engine, watcher: Watcher) -> list[TrialRecord]:
    """Make the launches and return their records; ends early where one fails or does not run as asked for.

    Raises:
        SpectuneError: When the disk, the tokenizer or a record fails.
    """
    space, study = question.space, question.folder
    where = _own_folder(study, engine)
    workload = open_prompts(space)
    refuse_other_prompts(study, workload)
    renderer = engine.renderer()
    made: list[TrialRecord] = []
    began = time.monotonic()
    try:
        canaries = study_canaries(space, workload, engine, renderer, study, question.records)
        feed = PromptFeed(
            workload, renderer,
            chat_template=space.workload.chat_template, output_tokens=space.workload.output_tokens,
            start=max(record.prompts_end for record in question.records),
        )  # fmt: skip
        for number, candidate in enumerate(question.order):
            watcher.planned(_progress(question, made, time.monotonic() - began))
            own = candidate == question.record.candidate
            why = "the exported launch once more" if own else "the best without speculation, to compare with"
            step = Step(number, Role.CONFIRM, candidate, why)
            watcher.launching(step)
            occasion = Occasion(
                len(question.records) + number, (spent_s(question.records) + spent_s(made)) / 3600, where.root
            )
            trial = Trial(step, where.open_trial(step), space, engine, feed, canaries, watcher, occasion)
            record = await trial.run()
            where.write_result(record)
            made.append(record)
            watcher.finished(record)
            if record.status is not Status.OK:
                break
    finally:
        renderer.close()
    return made


def judge_check(question: Question, made: Sequence[TrialRecord]) -> list[LevelHeld]:
    """Compare the launches with the records: the objectives together first, then every level's decode speed."""
    space = question.space
    figures: list[tuple[str, str, Speed]] = [(TOGETHER, space.objectives[0].level, together(space))]
    figures += [(name, name, of_level(name)) for name in space.workload.level_names]
    return [_held(name, level, speed, question, made) for name, level, speed in figures]


def _held(name: str, level: str, speed: Speed, question: Question, made: Sequence[TrialRecord]) -> LevelHeld:
    study = question.evidence.line.launches
    noise, of_study = pooled_noise([study, made], speed), noise_of(study, speed)

    def figures(then: Sequence[LaunchSpeed], now: Sequence[LaunchSpeed]) -> tuple[Estimate, Estimate]:
        return mean_speed(then, of_study), mean_speed(now, noise)

    def pair(candidate: Candidate) -> tuple[list[LaunchSpeed], list[LaunchSpeed]]:
        now = [record for record in made if record.candidate == candidate]
        then = question.recorded(candidate)
        found = tuple(speeds(records, speed, level, question.space) for records in (then, now))
        assert all(found), "a launch that ran as asked for has all its levels"
        return found[0], found[1]

    launch = question.record.candidate
    then, now = pair(launch)
    lengths = (_accepted(then), _accepted(now))
    change = compare(name, now, then, noise)
    if launch == question.baseline:
        return LevelHeld(name, Held(change, None, None, launch.speculative), figures(then, now), None, lengths)
    base_then, base_now = pair(question.baseline)
    held = Held(
        change, compare(name, base_now, base_then, noise), compare(name, now, base_now, noise), launch.speculative
    )
    return LevelHeld(name, held, figures(then, now), figures(base_then, base_now), lengths)


def _accepted(group: Sequence[LaunchSpeed]) -> float:
    return fmean(launch.accept_length for launch in group)


def _own_folder(study: StudyFolder, engine: Engine) -> StudyFolder:
    """Return a folder for the launches, with the machine they are compared with and what their engine needs."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    own = StudyFolder(study.root / CHECKS / stamp)
    own.keep_environment(study.environment())
    for name, text in engine.belongings().items():
        files.write_whole(own.root / name, text)
    return own


def _progress(question: Question, made: Sequence[TrialRecord], elapsed_s: float) -> Progress:
    """Return how many launches are done, and the time the rest took when it was recorded; of virtual time the pace."""
    rest = question.order[len(made) :]
    left: float | None = sum(fmean(r.seconds.total for r in question.recorded(candidate)) for candidate in rest)
    if question.space.engine.virtual:
        left = len(rest) * elapsed_s / len(made) if made else None
    return Progress(len(made), len(question.order), spent_s(made), left)


def with_prompts(folder: StudyFolder, space: SearchSpace, beside: SearchSpace | None) -> SearchSpace:
    """Return the study's space with its prompts where they lie: beside the file the study was begun with, if given.

    Raises:
        SpectuneError: The prompts are files and nobody said where, or the file asks other questions.
    """
    if beside is not None:
        if beside.workload != space.workload:
            raise SpectuneError(f"{beside.path} has another workload than the study {folder.name} was begun with")
        return replace(space, path=beside.path)
    local = [source.prompts for source in space.workload.prompts if not source.prompts.startswith("builtin:")]
    missing = [name for name in local if not (space.path.parent / name).exists()]
    if missing:
        raise SpectuneError(
            f"the prompts of the study {folder.name} are files ({', '.join(missing)}) beside the search space it was "
            "begun with; name that with --space FILE"
        )
    return space
