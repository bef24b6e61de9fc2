"""The book of a study that several workers share: claims and records in the database, a copy of the records here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from spectune.errors import SpectuneError
from spectune.search.shared.entries import Entry, finished, standing
from spectune.search.shared.line import Line, Unanswered
from spectune.search.shared.mirror import SECOND, Mirror
from spectune.search.shared.trials import SharedTrials
from spectune.search.storage.book import Standing
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Step

LOOK_S = 2.0  # between looks of a worker that waits for others


class SharedBook:
    """One worker's side of a shared study.

    Nothing is lost while the database is away: the record of a launch is in this worker's folder before it is sent, and
    what was not sent is sent at the next start. Nothing is done twice either, as long as every worker is heard within
    the time it takes to take its launch over; if one is, the record that comes first counts.
    """

    def __init__(
        self,
        trials: SharedTrials,
        mirror: Mirror,
        line: Line,
        *,
        worker: str,
        place: str,
        notes: Callable[[str], None],
        remark: str = "",
    ) -> None:
        """Join.

        Args:
            trials: The study.
            mirror: This worker's copy of it.
            line: To the database.
            worker: Who this is: no other worker has that name at the same time.
            place: The machine its launches are made on.
            notes: Who is told of what happens.
            remark: What a reader of this worker's records should know of it.
        """
        self._trials, self._mirror, self._line = trials, mirror, line
        self._worker, self._machine, self._place = worker, place, place
        self._notes, self._remark = notes, remark
        self._claim: int | None = None  # number of the trial that holds the launch under way
        self._sent = False
        self._told: set[int] = set()  # damaged trials
        self._known: set[int] = set()  # finished launches that whoever plans the next one knows of

    @property
    def study(self) -> str:
        """The study, wherever its workers keep their copies."""
        return self._trials.study

    @property
    def place(self) -> str:
        """Where this worker makes its launches."""
        return self._place

    def settle(self, place: str) -> None:
        """Name the group of GPUs, if it is not all of the machine; what the machine is called was said before."""
        _, colon, group = place.partition(":")
        self._place = f"{self._machine}{colon}{group}"

    async def read(self) -> Standing:
        """Return where the study stands, and bring the copy up to it."""
        begins = not self._sent
        if begins:
            await self._send_what_was_kept()
        if self._line.quiet_for(2.0 * self._trials.beat_s):  # after an outage others are silent too
            await self._line.call(self._trials.take_over)
        entries = await self._line.call(self._trials.entries)
        for entry in entries:
            if entry.open and entry.worker == self._worker and entry.number != self._claim:
                # Of its life before, which ended over that launch; or one whose confirmation was lost with the line.
                end = self._trials.abandon if begins else self._trials.release
                await self._line.call(partial(end, entry.number))
                entries = await self._line.call(self._trials.entries)
        self._follow(entries)
        now = replace(standing(entries, self._place), set_aside=self._mirror.set_aside)
        self._known = {record.trial for record in now.records}
        return now

    async def news(self, since: Standing) -> Standing:
        """Look again and again until something has changed."""
        while True:
            await asyncio.sleep(LOOK_S)
            now = await self.read()
            if now != since:
                return now

    @asynccontextmanager
    async def claimed(self, step: Step) -> AsyncIterator[bool]:
        """Claim a launch, and have its heart beat meanwhile."""
        try:
            self._claim = await self._line.once(partial(self._trials.claim, step, self._known))
        except Unanswered:
            self._claim = None  # whether it is claimed or not, `read` tidies up when the database is back
            await asyncio.sleep(LOOK_S)
        if self._claim is None:
            yield False
            return
        heart = asyncio.create_task(self._beat(self._claim))
        try:
            yield True
        finally:
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)
            claim, self._claim = self._claim, None
            with contextlib.suppress(Unanswered, SpectuneError):
                await self._line.once(partial(self._trials.release, claim))

    async def finish(self, record: TrialRecord) -> None:
        """Keep the record here, then send it, for as long as that takes."""
        if self._remark:
            record = replace(record, notes=(*record.notes, self._remark))
        await self._send(self._mirror.keep(record), self._claim)
        self._known.add(record.trial)
        self._follow(await self._line.call(self._trials.entries))

    async def _send_what_was_kept(self) -> None:
        """Send the records that only this folder has: of an outage, or from before the database was lost."""
        done = finished(await self._line.call(self._trials.entries))
        kept = [record for number, record in self._mirror.kept.items() if number not in done]
        for record in kept:
            await self._send(record, None)
        if kept:
            self._notes(f"sent {len(kept)} finished launches that only this machine had")
        self._sent = True

    async def _send(self, record: TrialRecord, claim: int | None) -> None:
        await self._line.call(partial(self._trials.complete, claim, record, self._mirror.attached(record)))

    def _follow(self, entries: list[Entry]) -> None:
        for number in self._trials.damaged.keys() - self._told:
            self._told.add(number)
            self._notes(f"{self._trials.damaged[number]}; it is set aside, and its launch is made again")
        done = finished(entries)
        for number in self._mirror.follow(done.values()):
            self._notes(
                f"launch {number} was finished by another worker first ({done[number].step.place}): that one counts, "
                f"and the one made here is kept in {SECOND}"
            )

    async def _beat(self, claim: int) -> None:
        while True:
            await asyncio.sleep(self._trials.beat_s)
            with contextlib.suppress(Unanswered):
                await self._line.once(partial(self._trials.beat, claim))
