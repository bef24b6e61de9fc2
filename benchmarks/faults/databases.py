"""The database of two workers is gone for a while: launches go on meanwhile, and all of them are there afterwards."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.faults.crew import AWAY, BACK, Crew, Unmet
from benchmarks.faults.row import Case, Row
from benchmarks.services.postgresql import PostgreSQL, installed
from spectune.errors import SpectuneError

WITHIN_S = 30.0  # what runs asks the database at least once a second
LOCK_TIMEOUT_S = 2  # how long a worker waits for a locked file before it says so


def cases(folder: Path) -> Iterator[Case]:
    """Yield the databases: a server that crashes, a file that somebody locks, and one that is moved away."""
    for name, attempt in (
        ("database gone and back (PostgreSQL)", try_server),
        ("database locked and free again (SQLite)", try_locked),
        ("database moved away and back (SQLite)", try_moved),
    ):
        yield Case(
            name, functools.partial(attempted, name, functools.partial(attempt, name, folder / attempt.__name__))
        )


def attempted(name: str, attempt: Callable[[], Row]) -> Row:
    """Return the row of an attempt, also where something that had to come did not come."""
    try:
        return attempt()
    except (Unmet, SpectuneError, RuntimeError) as error:  # the last one: the server did not start
        return Row(name, None, None, False, False, 0, 0, False, str(error))


@contextlib.contextmanager
def server() -> Iterator[PostgreSQL]:
    """A PostgreSQL of this attempt's own.

    Raises:
        Unmet: There is none to start.
    """
    if not installed():
        raise Unmet("not run: PostgreSQL is not installed; .ci/run names Debian's package")
    database = PostgreSQL()
    try:
        yield database
    finally:
        database.close()


def try_server(name: str, folder: Path) -> Row:
    """Crash the server while both make a launch, and start it when both have finished theirs."""
    with server() as database, Crew(folder, database.url()) as crew:
        crew.at_work()
        began = time.monotonic()
        database.crash()
        detected_s = crew.all_say(AWAY) - began
        crew.idle()
        database.start()
        crew.all_say(BACK)
        return crew.judged(name, detected_s, WITHIN_S)


def try_locked(name: str, folder: Path) -> Row:
    """Lock the file while both make a launch, and let it go when both have finished theirs."""
    file = folder / "shared.db"
    with Crew(folder, f"sqlite:///{file}?timeout={LOCK_TIMEOUT_S}") as crew:
        crew.at_work()
        with contextlib.closing(sqlite3.connect(file, timeout=60, isolation_level=None)) as holder:
            holder.execute("BEGIN EXCLUSIVE")
            began = time.monotonic()
            detected_s = crew.all_say(AWAY) - began
            crew.idle()
        crew.all_say(BACK)
        return crew.judged(name, detected_s, WITHIN_S)


def try_moved(name: str, folder: Path) -> Row:
    """Move the file away while both make a launch: they end, and the same commands go on when it is back."""
    file, elsewhere = folder / "shared.db", folder / "elsewhere.db"
    with Crew(folder, f"sqlite:///{file}") as crew:
        crew.at_work()
        began = time.monotonic()
        file.rename(elsewhere)
        for worker in crew.workers:
            if worker.ends() not in {1, 2}:
                raise Unmet(f"{worker.bench.folder.name} took no notice: …{worker.said[-300:]}")
        detected_s = time.monotonic() - began
        elsewhere.rename(file)
        for worker in crew.workers:
            worker.start()
        return crew.judged(name, detected_s, WITHIN_S)
