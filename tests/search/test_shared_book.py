"""Workers of one study: claims, takeovers, outages, and the copies they keep."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from shared_samples import SHORT_S, STUDY, Member, away, silence, silent_s, step, url

from spectune import files
from spectune.errors import SpectuneError
from spectune.machine import here
from spectune.search import Role, TrialRecord
from spectune.search.shared.mirror import SECOND
from spectune.search.shared.worker import Worker
from spectune.search.storage.book import Standing


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "shared.db"


async def told(member: Member) -> None:
    for _ in range(1500):
        if member.told:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it says nothing")


async def left_behind(member: Member, file: Path) -> Standing:
    """Return where the study stands for a worker that sees a launch left behind, after a long silence."""
    silence(file)
    standing = await member.book.read()
    assert standing.interrupted
    return standing


async def beats(file: Path) -> None:
    """Wait until every heart has beaten."""
    for _ in range(6000):
        if silent_s(file) < 20:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("a heart has stopped")


def test_of_two_that_claim_one_launch_one_has_it(file: Path) -> None:
    async def both() -> None:
        a, b = Member(file, "a"), Member(file, "b")
        async with a.book.claimed(step(0)) as first, b.book.claimed(step(0, place="b")) as second:
            assert (first, second) == (True, False)
            assert [s.trial for s in (await b.book.read()).running] == [0]
            assert (await a.book.read()).running == (step(0),), "its own launch is under way too"
        assert (await b.book.read()).running == ()

    asyncio.run(both())


def test_every_worker_has_every_record_once(file: Path) -> None:
    async def three() -> None:
        a, b = Member(file, "a"), Member(file, "b")
        assert await a.make(step(0))
        assert await b.make(step(1, place="b"), 150.0)
        late = Member(file, "late")
        for member in (a, b, late):
            records = (await member.book.read()).records
            assert [(r.trial, r.place) for r in records] == [(0, "a"), (1, "b")]
            assert member.folder.records() == list(records)
            assert member.told == []
        assert not await late.make(step(1, place="late")), "what is finished cannot be claimed"

    asyncio.run(three())


def test_a_launch_that_was_chosen_before_another_was_finished_is_chosen_anew(file: Path) -> None:
    async def chosen() -> None:
        a, b = Member(file, "a"), Member(file, "b")
        await b.book.read()
        assert await a.make(step(0))  # and with that a worker may have seen the end, and left
        async with b.book.claimed(step(1, place="b")) as mine:
            assert not mine
        assert (await b.book.read()).interrupted == ()
        async with b.book.claimed(step(1, place="b")) as mine:
            assert mine

    asyncio.run(chosen())


def test_an_unfinished_launch_is_given_back_and_made_by_another(file: Path) -> None:
    async def given_back() -> None:
        a, b = Member(file, "a"), Member(file, "b")
        with pytest.raises(KeyboardInterrupt):
            async with a.book.claimed(step(1)):
                raise KeyboardInterrupt
        standing = await b.book.read()
        assert (standing.running, standing.interrupted) == ((), (step(1),))
        assert await b.make(step(1, place="b"))
        assert (await b.book.read()).interrupted == ()

    asyncio.run(given_back())


def test_what_tells_of_one_machine_alone_is_made_again_there(file: Path) -> None:
    async def left() -> None:
        a, b = Member(file, "a"), Member(file, "b")
        async with a.book.claimed(step(0)):
            pass
        assert (await b.book.read()).interrupted == ()
        assert (await a.book.read()).interrupted == (step(0),)

    asyncio.run(left())


def test_a_worker_that_starts_again_gives_back_what_it_left_behind(file: Path) -> None:
    async def again() -> None:
        Member(file, "a").trials.claim(step(1))  # and then it was killed
        b = Member(file, "b")
        assert [s.trial for s in (await b.book.read()).running] == [1]
        assert (await Member(file, "a").book.read()).interrupted == (step(1),)

    asyncio.run(again())


@pytest.mark.parametrize("silent_from", ["the start", "the first heartbeat"])
def test_a_silent_worker_is_taken_over_and_the_first_record_counts(file: Path, silent_from: str) -> None:
    async def silent() -> None:
        a, b = Member(file, "a"), Member(file, "b")
        if silent_from == "the start":  # killed between its claim and its first heartbeat
            a.trials.start = lambda number: None  # type: ignore[method-assign]
        claim = a.trials.claim(step(1))
        assert (await b.book.read()).interrupted == ()
        assert (await left_behind(b, file)).running == ()
        assert await b.make(step(1, place="b"), 150.0)
        # The silent one was not dead after all.
        a.book._claim = claim
        await a.book.finish(a.made(step(1), 90.0))
        assert [r.place for r in (await a.book.read()).records] == ["b"]
        assert [r.place for r in a.folder.records()] == ["b"]
        assert (a.folder.root / SECOND / "0001/result.json").exists()
        assert any("finished by another worker first (b)" in line for line in a.told)
        assert b.told == []

    asyncio.run(silent())


def test_a_record_that_comes_before_whoever_took_over_is_done_counts(file: Path) -> None:
    async def late() -> None:
        a, b = Member(file, "a"), Member(file, "b")
        claim = a.trials.claim(step(1))
        await left_behind(b, file)
        async with b.book.claimed(step(1, place="b")) as mine:
            assert mine
            a.book._claim = claim
            await a.book.finish(a.made(step(1), 90.0))
            await b.book.finish(b.made(step(1, place="b"), 150.0))
        for member in (a, b):
            assert [r.place for r in member.folder.records()] == ["a"]
        assert a.told == []
        assert (b.folder.root / SECOND / "0001").exists()

    asyncio.run(late())


def test_a_worker_is_lost_over_a_launch_when_it_is_killed_and_not_when_it_leaves(file: Path) -> None:
    async def lost() -> None:
        async with Member(file, "a").book.claimed(step(1)):
            pass
        Member(file, "b").trials.claim(step(1))  # and then it was killed, and started again
        await Member(file, "b").book.read()
        c = Member(file, "c")
        assert (await c.book.read()).lost == {1: 1}
        c.trials.claim(step(1))
        d = Member(file, "d")
        assert (await left_behind(d, file)).lost == {1: 2}

    asyncio.run(lost())


def test_a_beating_heart_keeps_a_launch(file: Path) -> None:
    async def beating() -> None:
        a, b = Member(file, "a"), Member(file, "b")
        a.trials.beat_s = 0.05
        async with a.book.claimed(step(1)) as mine:
            assert mine
            for _ in range(3):  # together longer than it takes to be taken over
                silence(file, 35)
                await beats(file)
                assert (await b.book.read()).interrupted == ()
            await a.book.finish(a.made(step(1)))
        assert [r.place for r in (await b.book.read()).records] == ["a"]

    asyncio.run(beating())


def test_a_database_that_is_away_costs_nothing(file: Path) -> None:
    async def outage() -> None:
        a, b = Member(file, "a", waits_s=SHORT_S), Member(file, "b", waits_s=SHORT_S)
        async with a.book.claimed(step(1)) as mine:
            assert mine
            with away(file):
                finishing = asyncio.create_task(a.book.finish(a.made(step(1))))
                await told(a)
                assert [r.trial for r in a.folder.records()] == [1], "it is on disk before it is sent"
                waiting = asyncio.create_task(b.book.read())
                await told(b)
            await finishing
        assert [r.place for r in (await waiting).records] in ([], ["a"])
        assert [r.place for r in (await b.book.read()).records] == ["a"]
        assert [("does not answer" in line, "answers again" in line) for line in a.told] == [
            (True, False),
            (False, True),
        ]

    asyncio.run(outage())


def test_a_claim_in_an_outage_is_no_claim_and_nothing_is_left_of_it(file: Path) -> None:
    async def outage() -> None:
        a = Member(file, "a", waits_s=SHORT_S)
        with away(file):
            async with a.book.claimed(step(1)) as mine:
                assert not mine
        assert (await a.book.read()).running == ()
        assert await a.make(step(1))

    asyncio.run(outage())


def test_what_was_not_sent_is_sent_at_the_next_start(file: Path) -> None:
    async def unsent() -> None:
        a = Member(file, "a")
        with away(file):
            a.book._mirror.keep(a.made(step(1)))  # killed before the database was back
        again = Member(file, "a")
        assert [r.trial for r in (await again.book.read()).records] == [1]
        assert again.told == ["sent 1 finished launches that only this machine had"]
        assert [r.place for r in (await Member(file, "b").book.read()).records] == ["a"]

    asyncio.run(unsent())


def test_a_lost_database_is_filled_again_from_any_copy(file: Path) -> None:
    async def found() -> Sequence[TrialRecord]:
        a, b = Member(file, "a"), Member(file, "b")
        await a.make(step(0))
        await b.make(step(1, place="b"))
        return (await a.book.read()).records

    async def lost() -> None:
        first, second = Member(file, "a"), Member(file, "b")
        assert (await first.book.read()).records == before
        assert (await second.book.read()).records == before
        assert second.told == []
        assert len(first.trials.entries()) == 2

    before = asyncio.run(found())
    file.unlink()
    asyncio.run(lost())


@pytest.mark.parametrize(
    ("key", "path", "value"), [("files", "$", "[]"), ("files", "$", "7"), ("record", "$.trial", "5")]
)
def test_a_trial_that_says_something_else_than_its_launch_is_damaged(
    file: Path, key: str, path: str, value: str
) -> None:
    asyncio.run(Member(file, "a").make(step(0)))
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "UPDATE trial_user_attributes SET value_json = json_set(value_json, ?, json(?)) WHERE key = ?",
            (path, value, key),
        )
    again = asyncio.run(set_aside(file))
    assert again == "trial 0 of the shared study small is damaged"


@pytest.mark.parametrize("value", ["{", "[1", '"\\'])
def test_a_trial_that_cannot_even_be_read_is_set_aside(file: Path, value: str) -> None:
    asyncio.run(Member(file, "a").make(step(0)))
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE trial_user_attributes SET value_json = ? WHERE key = 'record'", (value,))
    assert asyncio.run(set_aside(file)) == "trial 0 of the shared study small is damaged"


async def set_aside(file: Path) -> str:
    """Join a study with a damaged trial, make its launch again, and return what was said of the trial."""
    b = Member(file, "b")
    assert (await b.book.read()).records == ()
    assert await b.make(step(0, place="b"))
    assert [r.place for r in (await b.book.read()).records] == ["b"]
    (told,) = b.told
    assert told.endswith("; it is set aside, and its launch is made again")
    return told.partition(" (")[0].partition(":")[0]


def test_a_trial_of_a_newer_spectune_ends_the_worker(file: Path) -> None:
    asyncio.run(Member(file, "a").make(step(0)))
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "UPDATE trial_user_attributes SET value_json = json_set(value_json, '$.schema', 99) WHERE key = 'record'"
        )
    with pytest.raises(SpectuneError, match="upgrade spectune"):
        asyncio.run(Member(file, "b").book.read())


def test_a_study_that_vanished_is_said_with_the_way_out(file: Path) -> None:
    async def vanished() -> None:
        a = Member(file, "a")
        await a.make(step(0))
        a.trials._storage.delete_study(a.trials._id)
        with pytest.raises(SpectuneError, match=r"cannot be used any more.*search --storage"):
            await a.book.read()

    asyncio.run(vanished())


def test_the_database_holds_one_optuna_trial_a_launch(file: Path) -> None:
    import optuna

    async def fill() -> None:
        a = Member(file, "a")
        await a.make(step(0))
        await a.make(step(1), 150.0)

    asyncio.run(fill())
    trials = optuna.load_study(study_name=STUDY, storage=url(file)).get_trials()
    assert [t.state.name for t in trials] == ["COMPLETE", "COMPLETE"]
    assert trials[1].values == [150.0, 100.0]
    assert trials[1].params["speculative-num-steps"] == 1
    assert trials[1].constraints["launch"] == -1.0


def test_after_an_outage_nobody_is_taken_for_lost_before_all_could_be_heard(file: Path) -> None:
    async def outage() -> None:
        a, b = Member(file, "a", waits_s=SHORT_S), Member(file, "b", waits_s=SHORT_S)
        a.trials.beat_s = 0.05
        async with a.book.claimed(step(1)) as mine:
            assert mine
            with away(file, passes_s=61):  # longer than it takes to be taken over
                waiting = asyncio.create_task(b.book.read())
                await told(b)
                b.trials.beat_s = 3600.0  # it has not been quiet for twice that
            assert (await waiting).interrupted == ()
            await beats(file)
            b.trials.beat_s = 0.0
            assert (await b.book.read()).interrupted == ()
            await a.book.finish(a.made(step(1)))
        assert [r.place for r in (await b.book.read()).records] == ["a"]

    asyncio.run(outage())


def test_the_answers_of_a_baseline_come_with_its_record(file: Path) -> None:
    async def answers() -> None:
        a, b = Member(file, "a"), Member(file, "b")
        for number in (0, 1):
            async with a.book.claimed(step(number)):
                made = a.made(step(number))
                files.write_json(a.folder.trial_folder(number, made.role) / "canary.json", {"together": [number]})
                await a.book.finish(made)
        await b.book.read()
        assert files.read_json(b.folder.trial_folder(0, Role.BASELINE) / "canary.json") == {"together": [0]}
        assert not (b.folder.trial_folder(1, Role.SEARCH) / "canary.json").exists()

    asyncio.run(answers())


def test_a_worker_keeps_its_name_in_its_folder_and_on_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = Worker.of("one"), Worker.of("one", "node7")
    first.keep()
    assert [worker.folder.name for worker in (first, second)] == ["one", "one.worker2"]
    assert (first.place, second.place) == (here(), "node7")
    assert first.name != second.name
    first.lock.release()
    again = Worker.of("one")
    assert (again.folder, again.name) == (first.folder, first.name)
    again.lock.release()
    copied = files.read_json(first.folder.root / "worker.json")
    files.write_json(first.folder.root / "worker.json", {**copied, "host": "elsewhere"})
    elsewhere = Worker.of("one")
    assert elsewhere.name != first.name
    elsewhere.lock.release()
    for rubbish in ("\x1b[31m", "a" * 1000, 7):
        files.write_json(first.folder.root / "worker.json", {**copied, "worker": rubbish})
        named = Worker.of("one")
        assert named.name != rubbish, "no name that a database could not keep"
        named.lock.release()
