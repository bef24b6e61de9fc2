"""A study from its first launch to its answer; started again, it goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spectune.bench.prompt_sources import Workload
from spectune.bench.prompt_stream import PromptStream
from spectune.engines.protocol import Engine, Occasion, Renderer
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.errors import SpectuneError
from spectune.machine import take_fingerprint
from spectune.search.canary import SAMPLED, Canaries
from spectune.search.canary import SEED as CANARY_SEED
from spectune.search.dominated import Dominated
from spectune.search.feed import PromptFeed
from spectune.search.folder import StudyFolder
from spectune.search.ledger import Ledger
from spectune.search.plan import Stop, next_step, progress, spent_s
from spectune.search.proposals import Proposer
from spectune.search.records import Role, TrialRecord
from spectune.search.samplers import GUIDED
from spectune.search.siblings import remarks
from spectune.search.traffic import open_prompts, summary
from spectune.search.trial import Trial
from spectune.search.watcher import Watcher
from spectune.space import SearchSpace


@dataclass(frozen=True)
class Ended:
    """How a study ended.

    Attributes:
        records: All its launches.
        stop: Why it ended.
    """

    records: Sequence[TrialRecord]
    stop: Stop


def open_study(folder: StudyFolder, space: SearchSpace, engine: Engine) -> None:
    """Begin the study, or make sure that the one in the folder is this one.

    Raises:
        SpectuneError: When the folder holds a study of another search space.
    """
    belongings = engine.belongings()
    if not folder.exists():
        software = engine.software()
        fingerprint = take_fingerprint(
            engine.title, packages=software.packages, engine_sitecustomize=software.sitecustomize
        )
        folder.begin(space.text, space.resolved_yaml(), fingerprint.to_json(), belongings)
        return
    refuse_another(folder, space)
    for name, text in belongings.items():
        if folder.belonging(name) != text:
            raise SpectuneError(
                f"the study {folder.name} was begun with another {name} (kept as {folder.root / name}); "
                "give this one a name of its own with --study NAME"
            )


def refuse_another(folder: StudyFolder, space: SearchSpace) -> None:
    """Make sure that a study that has begun is one of this space.

    Raises:
        SpectuneError: It is another's.
    """
    if folder.exists() and not space.asks_the_same_as(folder.space()):
        raise SpectuneError(
            f"the study {folder.name} was begun with another search space or engine (kept as {folder.resolved_file}); "
            "give this one a name of its own with --study NAME"
        )


async def run_study(
    folder: StudyFolder, space: SearchSpace, engine: Engine, watcher: Watcher, *, sampler: str = GUIDED
) -> Ended:
    """Launch, measure and tell until the budget, the space or the hope is exhausted.

    Every launch's record is on disk before anything else is told of it.

    Args:
        folder: Where the study is kept.
        space: Its search space with its budget.
        engine: What is launched.
        watcher: Who is told.
        sampler: What proposes candidates, by name.

    Raises:
        SpectuneError: When the disk, the tokenizer or a record fails; what was finished stays.
    """
    records = folder.records()
    virtual = isinstance(engine, SimulatedEngine) and engine.virtual
    began, known = time.monotonic(), len(records)
    so_far = progress(records, space)
    watcher.planned(replace(so_far, left_s=None) if virtual else so_far)
    proposer = Proposer(space, engine, sampler=sampler)
    step = next_step(records, folder.interrupted(), space, proposer)
    if isinstance(step, Stop):
        return Ended(records, step)
    ledger = Ledger(folder.ledger, folder.name, space, records)
    workload = open_prompts(space)
    renderer = engine.renderer()
    try:
        told_of_reuse, told_too_long = False, 0
        if not records:
            for line in summary(space, workload, renderer).lines():
                watcher.notes(line)
        canaries = study_canaries(space, workload, engine, renderer, folder, records)
        told: set[str] = set()  # changes of the machine
        feed = PromptFeed(
            workload, renderer,
            chat_template=space.workload.chat_template, output_tokens=space.workload.output_tokens,
            start=max((record.prompts_end for record in records), default=0),
        )  # fmt: skip
        while not isinstance(step, Stop):
            watcher.launching(step)
            occasion = Occasion(len(records), spent_s(records) / 3600, folder.root)
            searched = step.role is Role.SEARCH and step.candidate.speculative
            dominated = Dominated(space, records) if searched else None  # baselines and finalists are measured in full
            trial = Trial(step, folder.open_trial(step), space, engine, feed, canaries, watcher, occasion, dominated)
            ledger.begin(step)
            record = await trial.run()
            seen = remarks(record, records)
            record = replace(record, notes=(*record.notes, *seen))
            folder.write_result(record)
            ledger.finish(record, records)
            records.append(record)
            watcher.finished(record)
            for remark in seen:
                watcher.notes(remark)
            for change in record.environment_changes:
                if change.matters and change.field not in told:
                    told.add(change.field)
                    watcher.notes(f"the machine is not as it was when the study began: {change}")
            if feed.reused and not told_of_reuse:
                told_of_reuse = True
                watcher.notes(
                    "the prompts have run out and are sent again: repeated ones may come from the prefix cache"
                )
            if feed.too_long > told_too_long:
                told_too_long = feed.too_long
                watcher.notes(f"{told_too_long} prompts are left out: with their answers they exceed the context")
            pace = (time.monotonic() - began) / (len(records) - known) if virtual else None
            watcher.planned(progress(records, space, pace))
            step = next_step(records, [], space, proposer)
    finally:
        renderer.close()
    return Ended(records, step)


def study_canaries(
    space: SearchSpace,
    workload: Workload,
    engine: Engine,
    renderer: Renderer,
    folder: StudyFolder,
    records: Sequence[TrialRecord],
) -> Canaries:
    """Return the questions for every launch, and the first baseline's answers where there are some."""
    sampled = PromptStream(workload, seed=CANARY_SEED).take(SAMPLED)
    section = space.workload
    canaries = Canaries(sampled, engine, renderer, chat_template=section.chat_template, temperature=section.temperature)
    first = next((r for r in records if not r.candidate.speculative and r.failure is None), None)
    if first is not None:
        canaries.remember(folder.trial_folder(first.trial, first.role))
    return canaries
