"""The contract of a study's book, for one process and for many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from shared_samples import Member, record, space, step

from spectune.search import Book, Step, StudyFolder, TrialRecord
from spectune.search.storage.book import LocalBook

# Opens the book anew, as the next process would, with the folder it keeps its records in.
Opened = Callable[[], tuple[Book, StudyFolder]]


@pytest.fixture(params=["local", "shared"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    if request.param == "shared":

        def member() -> tuple[Book, StudyFolder]:
            a = Member(tmp_path / "shared.db", "a")
            return a.book, a.folder

        return member
    folder = StudyFolder(tmp_path / "studies" / "alone")
    folder.root.mkdir(parents=True)
    return lambda: (LocalBook(folder, space()), folder)


def made(folder: StudyFolder, at: Step) -> TrialRecord:
    folder.open_trial(at)
    return replace(record(at.trial, at.candidate, 100.0, role=at.role), place=at.place, why=at.why)


def damage(folder: Path) -> None:
    for storage in folder.rglob("*.db"):
        storage.write_bytes(b"no database any more")


async def make(book: Book, folder: StudyFolder, *steps: Step) -> None:
    for at in steps:
        async with book.claimed(at) as mine:
            assert mine
            await book.finish(made(folder, at))


def at_place(book: Book, number: int) -> Step:
    return step(number, place=book.place)


def test_a_new_study_is_empty(opened: Opened) -> None:
    book, _ = opened()
    standing = asyncio.run(book.read())
    assert (list(standing.records), list(standing.running), list(standing.interrupted)) == ([], [], [])


def test_finished_launches_are_read_back_once_and_in_order(opened: Opened) -> None:
    book, folder = opened()
    asyncio.run(make(book, folder, *(at_place(book, number) for number in (0, 1, 2))))
    for one in (book, opened()[0]):
        standing = asyncio.run(one.read())
        assert [r.trial for r in standing.records] == [0, 1, 2]
        assert (list(standing.running), list(standing.interrupted)) == ([], [])
    assert [r.trial for r in folder.records()] == [0, 1, 2]


def test_a_launch_that_was_not_finished_is_interrupted_for_the_next_process(opened: Opened) -> None:
    book, folder = opened()
    asyncio.run(make(book, folder, at_place(book, 0)))

    async def ended_by_the_user() -> None:
        async with book.claimed(at_place(book, 1)):
            folder.open_trial(at_place(book, 1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(ended_by_the_user())
    standing = asyncio.run(opened()[0].read())
    assert [r.trial for r in standing.records] == [0]
    assert list(standing.interrupted) == [at_place(book, 1)]


def test_an_interrupted_launch_is_made_again(opened: Opened) -> None:
    book, folder = opened()

    async def left() -> None:
        async with book.claimed(at_place(book, 0)):
            folder.open_trial(at_place(book, 0))

    asyncio.run(left())
    again, folder = opened()
    (interrupted,) = asyncio.run(again.read()).interrupted
    asyncio.run(make(again, folder, interrupted, at_place(again, 1)))
    standing = asyncio.run(again.read())
    assert [r.trial for r in standing.records] == [0, 1]
    assert list(standing.interrupted) == []


def test_a_record_is_on_disk_before_it_is_told(opened: Opened, tmp_path: Path) -> None:
    book, folder = opened()

    async def told() -> None:
        async with book.claimed(at_place(book, 0)):
            record = made(folder, at_place(book, 0))
            damage(tmp_path)
            finishing = asyncio.create_task(book.finish(record))
            while not folder.records():
                assert not finishing.done()
                await asyncio.sleep(0.02)
            finishing.cancel()
            await asyncio.gather(finishing, return_exceptions=True)

    asyncio.run(told())
    assert [r.trial for r in folder.records()] == [0]
