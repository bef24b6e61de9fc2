"""Workers of a small shared study on a SQLite file, and launches that could have been."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from search_samples import baseline, chain, engine, record, space

from spectune.search import Role, Step, StudyFolder, TrialRecord
from spectune.search.shared.book import SharedBook
from spectune.search.shared.description import Description, begin
from spectune.search.shared.line import Line
from spectune.search.shared.mirror import Mirror
from spectune.search.shared.storage import Address, open_storage
from spectune.search.shared.trials import SharedTrials

__all__ = ["STUDY", "Member", "away", "described", "engine", "record", "space", "step", "url"]
STUDY = "small"


def url(file: Path) -> str:
    """A database whose locks are waited for only shortly."""
    return f"sqlite:///{file}?timeout=0.2"


def described(takeover_s: int = 60) -> Description:
    text = space().text
    return Description(text, space().resolved_yaml(), "here", {}, "an engine", "guided", takeover_s)


class Member:
    """A worker with its folder, its book, and what it was told."""

    def __init__(self, file: Path, name: str, *, place: str = "", takeover_s: int = 60) -> None:
        address = Address.of(url(file))
        storage = open_storage(address)
        begin(storage, address, STUDY, space(), described(takeover_s))
        self.told: list[str] = []
        self.folder = StudyFolder(file.parent / "studies" / name)
        self.trials = SharedTrials(storage, STUDY, space(), name, takeover_s)
        self.book = SharedBook(
            self.trials, Mirror(self.folder), Line(address, self.told.append),
            worker=name, place=place or name, notes=self.told.append,
        )  # fmt: skip

    def made(self, step: Step, speed: float = 100.0) -> TrialRecord:
        """Return a launch as this worker could have made it."""
        self.folder.open_trial(step)
        return replace(record(step.trial, step.candidate, speed, role=step.role), place=step.place, why=step.why)

    async def make(self, step: Step, speed: float = 100.0) -> bool:
        """Look, claim a launch and finish it; returns whether it was this worker's."""
        await self.book.read()
        async with self.book.claimed(step) as mine:
            if mine:
                await self.book.finish(self.made(step, speed))
            return mine


def step(number: int, *, place: str = "a", steps: int = 1) -> Step:
    candidate = baseline() if number == 0 else chain(steps)
    return Step(number, Role.BASELINE if number == 0 else Role.SEARCH, candidate, "to see", place)


@contextmanager
def away(file: Path) -> Iterator[None]:
    """The database answers nobody meanwhile."""
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        holder.execute("ROLLBACK")
        holder.close()
