"""A study from its first launch to its answer; started again, it goes on where it was."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spectune.bench.prompt_sources import Workload
from spectune.bench.prompt_stream import PromptStream
from spectune.counts import count
from spectune.engines.protocol import Engine, Occasion, Renderer
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.machine import LOOK_S, CoreMeter, cores_in_use
from spectune.sampler_names import GUIDED
from spectune.search.commentary import Gauge, Remarks
from spectune.search.evidence.siblings import remarks
from spectune.search.launch.canary import SAMPLED, Canaries
from spectune.search.launch.canary import SEED as CANARY_SEED
from spectune.search.launch.dominated import may_end
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.room import Room, room_for
from spectune.search.launch.traffic import open_prompts, summary
from spectune.search.launch.trial import Trial
from spectune.search.planning.budget import spent_s
from spectune.search.planning.plan import Stop, Wait, next_step
from spectune.search.proposing.proposals import Proposer
from spectune.search.proposing.warm_start import WarmStart
from spectune.search.storage.book import Book, LocalBook, Standing
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.given_up import given_up
from spectune.search.storage.kept_prompts import refuse_other_prompts
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Step
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
    folder: StudyFolder,
    space: SearchSpace,
    engine: Engine,
    watcher: Watcher,
    *,
    sampler: str = GUIDED,
    book: Book | None = None,
) -> Ended:
    """Launch, measure and tell until the budget, the space or the hope is exhausted.

    Every launch's record is on disk before anything else is told of it.

    Args:
        folder: Where the study is kept.
        space: Its search space with its budget.
        engine: What is launched.
        watcher: Who is told.
        sampler: What proposes candidates, by name.
        book: Where launches are written down; by default in the folder alone.

    Raises:
        SpectuneError: When the disk, the tokenizer or a record fails; what was finished stays.
    """
    book, meter = book or LocalBook(folder, space), CoreMeter()
    proposer = Proposer(space, engine, sampler=sampler, warm_start=WarmStart.of(folder))
    standing = await book.read()
    virtual = isinstance(engine, SimulatedEngine) and engine.virtual
    gauge = Gauge(space, proposer, watcher, known=len(standing.records), virtual=virtual)
    expected = gauge.begins(standing)
    step = _next(standing, space, proposer, book.place)
    if isinstance(step, Stop):
        return Ended(standing.records, step)
    workload = open_prompts(space)
    refuse_other_prompts(folder, workload)
    with contextlib.ExitStack() as held:
        renderer = held.enter_context(contextlib.closing(engine.renderer()))
        if not virtual:
            await _clear_machine(watcher)
            await _look_around(watcher, meter)
        watcher.notes(f"plan: {expected.words}; it rests on {expected.rests_on}")
        if not standing.records:
            for line in summary(space, workload, renderer).lines():
                watcher.notes(line)
        feed = _feed(space, workload, renderer, standing.records)
        canaries = study_canaries(space, workload, engine, renderer, folder, ())
        # For the whole run, so that all launches of a study that begins here are made on the same GPUs.
        parallel, notes = space.engine.parallel, watcher.notes
        room = None if virtual else held.enter_context(await room_for(book.study, folder.name, engine, parallel, notes))
        if room is not None and book.place:
            book.settle(room.place)
            standing = await book.read()
            step = _next(standing, space, proposer, book.place)
        remarks_on = Remarks(watcher, space, standing.records)
        launches = _Launches(folder, space, engine, feed, canaries, watcher, room, book, remarks_on)
        while not isinstance(step, Stop):
            standing = await launches.after(step, standing)
            gauge.goes_on(standing)
            remarks_on.elsewhere(standing.records)
            step = _next(standing, space, proposer, book.place)
    return Ended(standing.records, step)


def _next(standing: Standing, space: SearchSpace, proposer: Proposer, place: str) -> Step | Stop | Wait:
    step = next_step(
        standing.records, standing.interrupted, space, proposer,
        running=standing.running, place=place, set_aside=standing.set_aside,
    )  # fmt: skip
    return replace(step, place=place) if isinstance(step, Step) else step


def _feed(space: SearchSpace, workload: Workload, renderer: Renderer, records: Sequence[TrialRecord]) -> PromptFeed:
    """Return the prompts that no launch has had yet."""
    return PromptFeed(
        workload, renderer,
        chat_template=space.workload.chat_template, output_tokens=space.workload.output_tokens,
        start=max((record.prompts_end for record in records), default=0),
    )  # fmt: skip


class _Launches:
    """Makes one launch after the other on this machine, where others are not faster."""

    def __init__(
        self,
        folder: StudyFolder,
        space: SearchSpace,
        engine: Engine,
        feed: PromptFeed,
        canaries: Canaries,
        watcher: Watcher,
        room: Room | None,
        book: Book,
        remarks_on: Remarks,
    ) -> None:
        self._folder, self._space, self._engine, self._feed = folder, space, engine, feed
        self._canaries, self._watcher, self._room = canaries, watcher, room
        self._book, self._remarks_on = book, remarks_on

    async def after(self, step: Step | Wait, standing: Standing) -> Standing:
        """Take a step, which is a launch or waiting for those of others; returns where the study stands then."""
        if isinstance(step, Wait):
            self._remarks_on.waiting(step, standing.running)
            return await self._book.news(standing)
        async with self._book.claimed(step) as mine:
            if mine:
                await self._make(step, standing)
        return await self._book.read()

    async def _make(self, step: Step, standing: Standing) -> None:
        """Make a launch that was claimed, write down what came of it, and then say so."""
        record = await self._record(step, standing)
        seen = remarks(record, standing.records)
        record = replace(record, notes=(*record.notes, *seen))
        await self._book.finish(record)
        self._watcher.finished(record)
        self._remarks_on.launch(record, seen)
        self._remarks_on.prompts(self._feed)

    async def _record(self, step: Step, standing: Standing) -> TrialRecord:
        records = standing.records
        here = [record for record in records if record.place == step.place]  # others' machines may round otherwise
        remember_baseline(self._canaries, self._folder, here)
        self._watcher.launching(step)
        # Others may have launches under way that no record tells of yet.
        occasion = Occasion(max(standing.launch_index, step.trial), spent_s(records) / 3600, self._folder.root)
        lost = given_up(
            step, standing.lost.get(step.trial, 0), self._space, self._engine,
            launch_index=occasion.number, prompts_end=self._feed.position,
        )  # fmt: skip
        if lost is not None:
            self._folder.open_trial(step)
            return lost
        trial = Trial(
            step, self._folder.open_trial(step), self._space, self._engine, self._feed, self._canaries, self._watcher,
            occasion, may_end(step, self._space, records), self._room,
        )  # fmt: skip
        return await trial.run()


async def _clear_machine(watcher: Watcher) -> None:
    """End what is left of our own launches, where even their guards were killed."""
    ended = await asyncio.to_thread(end_leftovers)
    if ended:
        names = ", ".join(sorted({process.name for process in ended}))
        left = count(len(ended), "process")
        watcher.notes(f"ended {left} of an engine that a spectune before this one left: {names}")


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
    remember_baseline(canaries, folder, records)
    return canaries


def remember_baseline(canaries: Canaries, folder: StudyFolder, records: Sequence[TrialRecord]) -> None:
    """Let the answers of the first baseline that was measured be those to compare with."""
    first = next((record for record in records if not record.candidate.speculative and record.failure is None), None)
    if first is not None and not canaries.has_baseline:
        canaries.remember(folder.trial_folder(first.trial, first.role))
