"""`spectune search --storage` and `spectune worker`: many machines, one study."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from spectune.cli.crewing import Crew
from spectune.cli.engines import provision_for
from spectune.cli.exit_codes import ExitCode
from spectune.cli.opening import Asked, Shared
from spectune.cli.program import STORAGE_VARIABLE
from spectune.cli.searching import carry_out, check_engine, ready_engine, what_works
from spectune.cli.terminal import PROGRESS, print_json, print_line
from spectune.counts import count
from spectune.engines.protocol import Engine
from spectune.sampler_names import check_sampler
from spectune.search import Book, Ended, Watcher, refuse_lender, run_study
from spectune.search.shared.book import SharedBook
from spectune.search.shared.ended import ended_already
from spectune.search.shared.following import Following
from spectune.search.shared.joining import (
    Comer,
    refuse_other_engine,
    refuse_other_space,
    space_here,
    take_up,
)
from spectune.search.shared.line import Line
from spectune.search.shared.meeting import Meeting
from spectune.search.shared.mirror import Mirror
from spectune.search.shared.storage import Address
from spectune.search.shared.worker import Worker
from spectune.search.storage.studies import check_name
from spectune.space import SearchSpace, load_space, parse_space


def search_shared(
    asked: Asked, shared: Shared, crew: Crew | None, *, study: str | None, torch_index: str | None, as_json: bool
) -> int:
    """Begin a shared study, or join the one that is there; returns the exit code.

    Args:
        asked: What is to be searched.
        shared: Where the workers meet.
        crew: Workers to start and to follow; None to make launches here.
        study: Its name; the space's by default.
        torch_index: Where a runtime that has to be installed takes torch from.
        as_json: Whether the answer is printed for scripts.

    Raises:
        SpectuneError: For bad input, a database that cannot be used, or an environment that cannot run it.
    """
    space = asked.space(launching=True)
    name = check_name(space.name if study is None else study)
    executor = None if crew is None else crew.executor(name, space)  # before minutes are spent on an installation
    lender = asked.lender
    if lender is not None:
        refuse_lender(lender, space)
    meeting = Meeting.at(shared.storage, name)
    found = meeting.described()
    if found is not None:
        refuse_other_space(found, name, space)
    engine = ready_engine(space, torch_index=torch_index, hint=what_works(asked.source), has_begun=found is not None)
    with _working(name, shared.place) as worker:
        comer = Comer(worker.folder, space, engine, asked.sampler, lender, launches=crew is None or crew.here)
        told = comer.begin(meeting, shared.takeover_s) if found is None else comer.join(meeting, found)
        found = found or meeting.require()
        remark = refuse_other_engine(found, name, engine, allowed=shared.other_engine)
        shared_through = f"the study {name} is shared through {meeting.address.shown}"
        _say([*told, f"{shared_through}: {_joining(name, meeting.address)} joins it"])
        meeting.sign_on(worker, engine)
        book = _book(meeting, worker, space, found.takeover_s, remark)
        if crew is None or executor is None:
            return carry_out(
                worker.folder, space, _launching(worker, space, engine, book, asked.sampler), as_json=as_json
            )
        command = crew.command(name, shared, torch_index)

        def following(watcher: Watcher) -> Coroutine[Any, Any, Ended]:
            seen = Following(worker.folder, space, engine, watcher, book(watcher), sampler=asked.sampler)
            return seen.run(executor, command, crew.workers)

        return carry_out(worker.folder, space, following, as_json=as_json)


def run_worker(study: str, shared: Shared, *, space_file: str | None, torch_index: str | None, as_json: bool) -> int:
    """Join a shared study until it ends; returns the exit code, 0 also where the study ends without an answer.

    Raises:
        SpectuneError: There is no such study, a database that cannot be used, or an environment that cannot run it.
    """
    meeting = Meeting.at(shared.storage, check_name(study), begins=False)
    found = meeting.require()
    check_sampler(found.sampler)
    with _working(study, shared.place) as worker:
        beside = None if space_file is None else load_space(space_file)
        if worker.fresh and (ended := ended_already(meeting, found, worker, beside)) is not None:
            return _nothing_to_do(study, ended, as_json=as_json)
        asked = parse_space(found.resolved, worker.folder.resolved_file)
        provision_for(asked.engine, torch_index=torch_index)
        space, engine = space_here(found, worker.folder, beside)
        check_engine(space, engine)
        remark = refuse_other_engine(found, study, engine, allowed=shared.other_engine)
        _say([*take_up(found, worker.folder, engine), f"joining the study {study} as {worker.name}"])
        meeting.sign_on(worker, engine)
        book = _book(meeting, worker, space, found.takeover_s, remark)
        done = carry_out(worker.folder, space, _launching(worker, space, engine, book, found.sampler), as_json=as_json)
        if done == ExitCode.NO:  # the study has ended: whoever starts workers need not start another
            return ExitCode.DONE
        return done


def _joining(study: str, address: Address) -> str:
    """Return the command of another worker; a URL that may hold secrets is not repeated in it."""
    if address.file is None:
        return f"`spectune worker {study}` with the same --storage or ${STORAGE_VARIABLE}"
    return f"`{shlex.join(['spectune', 'worker', study, '--storage', address.shown])}`"


def _nothing_to_do(study: str, ended: Ended, *, as_json: bool) -> int:
    if as_json:
        print_json({"study": study, "launches": len(ended.records), "ended": ended.stop.reason})
    else:
        print_line(
            f"the study {study} has ended after {count(len(ended.records), 'launch')}: {ended.stop.reason}; `spectune "
            "search SPACE --storage URL` brings a copy of it here"
        )
    return ExitCode.DONE


@contextlib.contextmanager
def _working(study: str, place: str) -> Iterator[Worker]:
    worker = Worker.of(study, place)
    try:
        yield worker
    finally:
        worker.leave()


def _say(lines: Sequence[str]) -> None:
    for line in lines:
        PROGRESS.print(line, markup=False, soft_wrap=True)


def _launching(
    worker: Worker, space: SearchSpace, engine: Engine, book: Callable[[Watcher], Book], sampler: str
) -> Callable[[Watcher], Coroutine[Any, Any, Ended]]:
    return lambda watcher: run_study(worker.folder, space, engine, watcher, sampler=sampler, book=book(watcher))


def _book(
    meeting: Meeting, worker: Worker, space: SearchSpace, takeover_s: int, remark: str
) -> Callable[[Watcher], Book]:
    def opened(watcher: Watcher) -> Book:
        trials = meeting.trials(space, worker, takeover_s)
        line = Line(meeting.address, watcher.notes)
        return SharedBook(
            trials, Mirror(worker.folder), line,
            worker=worker.name, place=worker.place, notes=watcher.notes, remark=remark,
        )  # fmt: skip

    return opened
