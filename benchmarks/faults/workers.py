"""One of two workers is lost, or silent for so long that its launch is made by the other one."""

from __future__ import annotations

import contextlib
import functools
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.faults.crew import AWAY, BACK, TAKEOVER_S, Crew
from benchmarks.faults.databases import WITHIN_S, attempted, server
from benchmarks.faults.row import Case, Row
from benchmarks.services.forwarder import Forwarder

TAKEN_WITHIN_S = TAKEOVER_S + 30.0  # the other one may have begun a launch of its own just before


def cases(folder: Path) -> Iterator[Case]:
    """Yield what happens to the second of two workers, on a server and on a file."""
    for name, attempt in (
        ("worker lost (PostgreSQL)", lost_on_server),
        ("worker cut off and back (PostgreSQL)", cut_off),
        ("worker cut off past its takeover (PostgreSQL)", cut_off_for_long),
        ("worker lost (SQLite)", lost_on_file),
        ("worker frozen past its takeover (SQLite)", frozen),
    ):
        yield Case(
            name, functools.partial(attempted, name, functools.partial(attempt, name, folder / attempt.__name__))
        )


def lost_on_server(name: str, folder: Path) -> Row:
    """Kill the second worker while it makes a launch; the database is a server."""
    with server() as database, Crew(folder, database.url()) as crew:
        return _lost(name, crew)


def lost_on_file(name: str, folder: Path) -> Row:
    """Kill the second worker while it makes a launch; the database is a file."""
    with Crew(folder, _file(folder)) as crew:
        return _lost(name, crew)


def cut_off(name: str, folder: Path) -> Row:
    """Cut the second worker off while it makes a launch, until that is finished."""
    with _behind_a_line(folder) as (line, crew):
        crew.second.launches()
        began = time.monotonic()
        line.cut()
        crew.second.says(AWAY)
        detected_s = time.monotonic() - began
        crew.second.finishes()
        line.mend()
        crew.second.says(BACK)
        return crew.judged(name, detected_s, WITHIN_S)


def cut_off_for_long(name: str, folder: Path) -> Row:
    """Cut the second worker off while it makes a launch, until the first one has made that launch too."""
    with _behind_a_line(folder) as (line, crew):
        trial = crew.second.launches()
        began = time.monotonic()
        line.cut()
        detected_s = crew.taken_over(trial) - began
        crew.first.finishes(trial)
        line.mend()
        return crew.judged(name, detected_s, TAKEN_WITHIN_S, second=1)


def frozen(name: str, folder: Path) -> Row:
    """Stop the second worker while it makes a launch, and let it go on when the first one has made that launch too."""
    with Crew(folder, _file(folder)) as crew:
        trial = crew.second.launches()
        began = time.monotonic()
        crew.second.process.send_signal(signal.SIGSTOP)
        try:
            detected_s = crew.taken_over(trial) - began
            crew.first.finishes(trial)
        finally:
            crew.second.process.send_signal(signal.SIGCONT)
        return crew.judged(name, detected_s, TAKEN_WITHIN_S, second=1)


@contextlib.contextmanager
def _behind_a_line(folder: Path) -> Iterator[tuple[Forwarder, Crew]]:
    with (
        server() as database,
        contextlib.closing(Forwarder(database.port)) as line,
        Crew(folder, database.url(), database.url(port=line.port)) as crew,
    ):
        yield line, crew


def _lost(name: str, crew: Crew) -> Row:
    """Kill the second worker while it makes a launch; once the first one makes it, the same command joins again."""
    trial = crew.second.launches()
    began = time.monotonic()
    crew.second.process.kill()
    crew.second.process.wait()
    detected_s = crew.taken_over(trial) - began
    crew.second.start()
    return crew.judged(name, detected_s, TAKEN_WITHIN_S)


def _file(folder: Path) -> str:
    return f"sqlite:///{folder}/shared.db"
