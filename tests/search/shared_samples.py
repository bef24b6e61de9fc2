"""Workers of a small shared study on a SQLite file, and launches that could have been."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
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
TAKEOVER_S = 60


OUTLASTED_S, SHORT_S = 60.0, 1.0  # how long a database's locks are waited for


def url(file: Path, *, waits_s: float = OUTLASTED_S) -> str:
    return f"sqlite:///{file}?timeout={waits_s}"


def described(takeover_s: int = TAKEOVER_S) -> Description:
    text = space().text
    return Description(text, space().resolved_yaml(), "here", {}, "an engine", "guided", takeover_s)


class Member:
    """A worker with its folder, its book, and what it was told."""

    def __init__(self, file: Path, name: str, *, place: str = "", waits_s: float = OUTLASTED_S) -> None:
        address = Address.of(url(file, waits_s=waits_s))
        storage = open_storage(address)
        begin(storage, address, STUDY, space(), described())
        self.told: list[str] = []
        self.folder = StudyFolder(file.parent / "studies" / name)
        self.trials = SharedTrials(storage, STUDY, space(), name, TAKEOVER_S)
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


OLDER = "UPDATE trial_heartbeats SET heartbeat = datetime(heartbeat, ?)"


@contextmanager
def away(file: Path, *, passes_s: int = 0) -> Iterator[None]:
    """The database answers nobody meanwhile; by the heartbeats in it, so many seconds have passed afterwards."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=OUTLASTED_S)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        holder.execute(OLDER, (f"-{passes_s} seconds",))
        yield
        holder.execute("COMMIT")


def silence(file: Path, seconds: int = TAKEOVER_S + 1) -> None:
    """So many seconds pass in which no heart beats."""
    with away(file, passes_s=seconds):
        pass


def silent_s(file: Path) -> float:
    """Return for how many seconds a heart has not beaten."""
    with closing(sqlite3.connect(file, timeout=OUTLASTED_S)) as database:
        (seconds,) = database.execute("SELECT max(unixepoch() - unixepoch(heartbeat)) FROM trial_heartbeats").fetchone()
        return float(seconds)
