"""A shared study as it is seen from where its workers were started: nothing is launched here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from spectune.counts import count
from spectune.engines.protocol import Engine
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.errors import SpectuneError
from spectune.executors import Executor, State, WorkerCommand, WorkerSeen
from spectune.search.commentary import Gauge, Remarks
from spectune.search.planning.plan import Stop, next_step
from spectune.search.proposing.proposals import Proposer
from spectune.search.proposing.warm_start import WarmStart
from spectune.search.storage.book import Book, Standing
from spectune.search.storage.folder import StudyFolder
from spectune.search.study import Ended
from spectune.search.watcher import Watcher
from spectune.space import SearchSpace

WORKERS = "workers"
"""Folder of the study that holds what its workers print."""
LOOK_S = 1.0
LEAVE_S = 60.0  # for workers to see that the study has ended, and to bring their copies of it up to date
TAIL_BYTES = 2000


class Following:
    """Starts workers, watches until their study has ended, and leaves none of them."""

    def __init__(
        self, folder: StudyFolder, space: SearchSpace, engine: Engine, watcher: Watcher, book: Book, *, sampler: str
    ) -> None:
        self._folder, self._space, self._watcher, self._book = folder, space, watcher, book
        self._proposer = Proposer(space, engine, sampler=sampler, warm_start=WarmStart.of(folder))
        self._virtual = isinstance(engine, SimulatedEngine) and engine.virtual
        self._words: dict[Path, str] = {}  # what was said last of each worker

    async def run(self, executor: Executor, command: WorkerCommand, count: int) -> Ended:
        """Return how the study ended; workers are started unless it has ended before.

        Args:
            executor: What starts them.
            command: What each of them runs.
            count: How many.

        Raises:
            SpectuneError: They cannot be started, or all of them have ended before the study.
        """
        standing = await self._book.read()
        gauge = Gauge(
            self._space, self._proposer, self._watcher,
            known=len(standing.records), virtual=self._virtual, launches=False,
        )  # fmt: skip
        gauge.begins(standing)
        if (stop := self._stop(standing, everywhere=True)) is not None:
            return Ended(standing.records, stop)
        try:
            self._watcher.says("starting the workers")
            await executor.start(command, count, self._folder.root / WORKERS)
            return await self._follow(executor, standing, gauge)
        except asyncio.CancelledError:
            self._watcher.notes("ending the workers")
            raise
        finally:
            await executor.end()

    async def _follow(self, executor: Executor, standing: Standing, gauge: Gauge) -> Ended:
        remarks = Remarks(self._watcher, self._space, standing.records)
        stop, since = None, time.monotonic()
        while True:
            seen = await executor.look()
            self._tell(seen)
            now = await self._book.read()
            if now != standing:
                standing, since = now, time.monotonic()
                gauge.goes_on(standing)
                remarks.elsewhere(standing.records)
                remarks.begun(standing.running)
                stop = self._stop(standing, everywhere=True)
            elif stop is None and all(worker.state.ended for worker in seen):
                stop = self._stop(standing, everywhere=False)
                if stop is None:
                    raise SpectuneError(self._all_gone(seen))
            leaving = any(worker.state is State.RUNNING for worker in seen)
            if stop is not None and (not leaving or time.monotonic() - since > LEAVE_S):
                return Ended(standing.records, stop)
            remarks.under_way(standing.running)
            await asyncio.sleep(LOOK_S)

    def _stop(self, standing: Standing, *, everywhere: bool) -> Stop | None:
        """Return why the study has ended: with nothing left to launch in any place, or at least in one of them.

        A place whose last worker is lost has launches left that nobody makes.
        """
        if standing.running or standing.interrupted:
            return None
        places = {record.place for record in standing.records} or {""}
        steps = [next_step(standing.records, (), self._space, self._proposer, place=place) for place in sorted(places)]
        stops = [step for step in steps if isinstance(step, Stop)]
        return stops[0] if stops and (not everywhere or len(stops) == len(steps)) else None

    def _tell(self, seen: Sequence[WorkerSeen]) -> None:
        for number, worker in enumerate(seen, 1):
            if self._words.get(worker.log) != worker.words:
                self._words[worker.log] = worker.words
                failed = f"; it printed to {worker.log}" if worker.state is State.FAILED else ""
                self._watcher.notes(f"worker {number} of {len(seen)}: {worker.words}{failed}")

    def _all_gone(self, seen: Sequence[WorkerSeen]) -> str:
        last = seen[0]
        said = last_line(last.log)
        return (
            f"nobody works any more: {count(len(seen), 'worker')} ended ({last.words}), and the study "
            f"{self._folder.name} has not; the last line of {last.log} is: {said or 'empty'}"
        )


def last_line(log: Path) -> str:
    """Return the last words of a worker; empty where there are none."""
    try:
        tail = log.read_bytes()[-TAIL_BYTES:].decode("utf-8", "replace")
    except OSError:
        return ""
    return next((line for line in reversed(tail.splitlines()) if line.strip()), "")
