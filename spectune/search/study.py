"""A study from its first launch to its answer; started again, it goes on where it was."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spectune.bench.prompt_sources import Workload
from spectune.bench.prompt_stream import PromptStream
from spectune.engines.protocol import Engine, Occasion, Renderer
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.machine import LOOK_S, CoreMeter, cores_in_use
from spectune.search.beside import busy_remark
from spectune.search.budget import spent_s
from spectune.search.canary import SAMPLED, Canaries
from spectune.search.canary import SEED as CANARY_SEED
from spectune.search.dominated import may_end
from spectune.search.feed import PromptFeed
from spectune.search.folder import StudyFolder
from spectune.search.ledger import Ledger
from spectune.search.plan import Stop, next_step
from spectune.search.proposals import Proposer
from spectune.search.prospect import progress, prospect
from spectune.search.records import Step, TrialRecord
from spectune.search.room import room_for
from spectune.search.samplers import GUIDED
from spectune.search.siblings import remarks
from spectune.search.traffic import open_prompts, summary
from spectune.search.trial import Trial
from spectune.search.warm_start import WarmStart
from spectune.search.watcher import Watcher
from spectune.serving import end_leftovers
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
    meter = CoreMeter()
    proposer = Proposer(space, engine, sampler=sampler, warm_start=WarmStart.of(folder))
    expected = prospect(records, space, proposer)
    so_far = progress(records, expected)
    watcher.planned(replace(so_far, left_s=None) if virtual else so_far)
    step = next_step(records, folder.interrupted(), space, proposer)
    if isinstance(step, Stop):
        return Ended(records, step)
    ledger = Ledger(folder.ledger, folder.name, space, records)
    workload = open_prompts(space)
    renderer, held = engine.renderer(), contextlib.ExitStack()
    try:
        if not virtual:
            await _clear_machine(watcher)
            await _look_around(watcher, meter)
        if not records:
            watcher.notes(f"plan: {expected.words}; it rests on {expected.rests_on}")
            for line in summary(space, workload, renderer).lines():
                watcher.notes(line)
        canaries = study_canaries(space, workload, engine, renderer, folder, records)
        remarks_on = _Remarks(watcher)
        feed = PromptFeed(
            workload, renderer,
            chat_template=space.workload.chat_template, output_tokens=space.workload.output_tokens,
            start=max((record.prompts_end for record in records), default=0),
        )  # fmt: skip
        # For the whole run, so that all launches of a study that begins here are made on the same GPUs.
        parallel = space.engine.parallel
        room = None if virtual else held.enter_context(await room_for(folder.root, engine, parallel, watcher.notes))
        while isinstance(step, Step):
            watcher.launching(step)
            occasion = Occasion(len(records), spent_s(records) / 3600, folder.root)
            dominated = may_end(step, space, records)
            opened = folder.open_trial(step)
            trial = Trial(step, opened, space, engine, feed, canaries, watcher, occasion, dominated, room)
            ledger.begin(step)
            record = await trial.run()
            seen = remarks(record, records)
            record = replace(record, notes=(*record.notes, *seen))
            folder.write_result(record)
            ledger.finish(record, records)
            records.append(record)
            watcher.finished(record)
            remarks_on.launch(record, seen)
            remarks_on.prompts(feed)
            pace = (time.monotonic() - began) / (len(records) - known) if virtual else None
            watcher.planned(progress(records, prospect(records, space, proposer), pace))
            step = next_step(records, [], space, proposer)
    finally:
        held.close()
        renderer.close()
    assert isinstance(step, Stop), "nobody else runs anything that could be waited for"
    return Ended(records, step)


class _Remarks:
    """Says what is worth a line of its own, once."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._changes: set[str] = set()  # of the machine
        self._reused, self._too_long, self._beside = False, 0, False

    def launch(self, record: TrialRecord, seen: Sequence[str]) -> None:
        """Say what was seen of a launch, and how the machine has changed."""
        for remark in seen:
            self._watcher.notes(remark)
        for change in record.environment_changes:
            if change.matters and change.field not in self._changes:
                self._changes.add(change.field)
                self._watcher.notes(f"the machine is not as it was when the study began: {change}")

        if not self._beside and (beside := busy_remark(record)) is not None:
            self._beside = True
            self._watcher.notes(beside)

    def prompts(self, feed: PromptFeed) -> None:
        """Say that prompts have run out, or are left out."""
        if feed.reused and not self._reused:
            self._reused = True
            self._watcher.notes(
                "the prompts have run out and are sent again: repeated ones may come from the prefix cache"
            )
        if feed.too_long > self._too_long:
            self._too_long = feed.too_long
            self._watcher.notes(f"{feed.too_long} prompts are left out: with their answers they exceed the context")


async def _clear_machine(watcher: Watcher) -> None:
    """End what is left of our own launches, where even their guards were killed."""
    ended = await asyncio.to_thread(end_leftovers)
    if ended:
        names = ", ".join(sorted({process.name for process in ended}))
        watcher.notes(f"ended {len(ended)} processes of an engine that a spectune before this one left: {names}")


async def _look_around(watcher: Watcher, meter: CoreMeter) -> None:
    """Say that others use the machine, before time is spent on measuring beside them."""
    for found in cores_in_use(await asyncio.to_thread(meter.read_after, LOOK_S)):
        watcher.notes(f"{found.seen}: {found.why}; {found.way_out}")


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
