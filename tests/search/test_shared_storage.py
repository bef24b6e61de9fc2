"""Addresses of databases, and what is said of those that cannot be used."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from filelock import FileLock
from search_samples import baseline, record
from shared_samples import STUDY, Member, described, engine, space, step, url

from spectune.errors import SpectuneError
from spectune.search import StudyFolder
from spectune.search.shared.description import Description, begin, find
from spectune.search.shared.joining import Comer, refuse_other_space
from spectune.search.shared.line import Line, Unanswered
from spectune.search.shared.meeting import Meeting
from spectune.search.shared.storage import Address, open_storage
from spectune.search.shared.trials import SharedTrials
from spectune.search.shared.worker import Worker
from spectune.search.storage.ledger import Ledger

SECRET = "pa55{0}w%40rd"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "a storage must be postgresql"),
        (f"://user:{SECRET}@host", "a storage must be postgresql"),
        ("mysql://host/spectune", "'mysql' is neither"),
        ("postgresql://user:half@pa55word@host/spectune", "write one in a password as %40"),
        ("postgresql://user:half@pa55/word@host/spectune", "write one in a password as %40"),
        ("sqlite://", "cannot be shared; name a file"),
        ("sqlite:///:memory:", "cannot be shared; name a file"),
        ("postgresql+asyncpg://host/spectune", r"the driver asyncpg is not installed; .*psycopg\[binary\]"),
    ],
)
def test_a_wrong_url_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(SpectuneError, match=words) as raised:
        Address.of(text)
    assert "pa55" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_a_postgresql_url_gets_the_driver_that_is_installed(scheme: str) -> None:
    address = Address.of(f"{scheme}://user:{SECRET}@host/spectune")
    assert address.url == f"postgresql+psycopg://user:{SECRET.replace('{', '%7B').replace('}', '%7D')}@host/spectune"
    assert address.shown == "postgresql://user:***@host/spectune"
    assert SECRET not in repr(address)


def test_a_database_that_does_not_listen_is_said_without_the_password() -> None:
    with pytest.raises(SpectuneError, match=r"cannot use the storage postgresql://user:\*\*\*@127.0.0.1") as raised:
        open_storage(Address.of(f"postgresql://user:{SECRET}@127.0.0.1:9/spectune"))
    assert "pa55" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(SpectuneError, match=r"there is no folder /.*/none: make it, or name another file"):
        open_storage(Address.of(f"sqlite:///{tmp_path}/none/shared.db"))
    (tmp_path / "folder.db").mkdir()
    for begins in (True, False):
        with pytest.raises(SpectuneError, match=r"folder\.db is a folder where a file has to be: move it away"):
            open_storage(Address.of(f"sqlite:///{tmp_path}/folder.db"), begins=begins)


def test_an_option_that_nothing_understands(tmp_path: Path) -> None:
    with pytest.raises(SpectuneError, match=r"Query string argument\(s\) 'bogus' are not accepted"):
        open_storage(Address.of(f"sqlite:///{tmp_path}/shared.db?bogus=1"))


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "shared.db").write_text("no database at all, but long enough to be looked at " * 20)
    with pytest.raises(SpectuneError, match="file is not a database"):
        open_storage(Address.of(url(tmp_path / "shared.db")))


@pytest.mark.parametrize(("revision", "words"), [("v2.6.0.a", "older Optuna"), ("v99.0.0.a", "newer Optuna")])
def test_tables_of_another_optuna(tmp_path: Path, revision: str, words: str) -> None:
    file = tmp_path / "shared.db"
    Member(file, "a")
    with sqlite3.connect(file) as database:
        database.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    database.close()
    with pytest.raises(SpectuneError, match=words):
        open_storage(Address.of(url(file)))


def test_tables_of_another_program(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shared.db") as database:
        database.execute("CREATE TABLE studies (name TEXT)")
    database.close()
    with pytest.raises(SpectuneError, match="its tables are another program's: name an empty database"):
        Meeting.at(url(tmp_path / "shared.db"), STUDY).described()


def test_a_database_that_is_read_only(tmp_path: Path) -> None:
    Member(tmp_path / "shared.db", "a")
    address = Address.of(f"sqlite:///file:{tmp_path}/shared.db?mode=ro&uri=true")
    with pytest.raises(SpectuneError, match="readonly database; whoever joins a study has to be able to write there"):
        begin(open_storage(address), address, "another", space(), described())


def test_a_study_that_is_not_there_is_said_with_those_that_are(tmp_path: Path) -> None:
    Member(tmp_path / "shared.db", "a")
    with pytest.raises(SpectuneError, match=rf"no study other in sqlite.*studies there: {STUDY}"):
        Meeting.at(url(tmp_path / "shared.db"), "other").require()


def test_a_study_of_another_program_is_left_alone(tmp_path: Path) -> None:
    import optuna

    optuna.create_study(study_name="theirs", storage=url(tmp_path / "shared.db")).add_trial(
        optuna.trial.create_trial(value=1.0)
    )
    with pytest.raises(SpectuneError, match="not a study of spectune; choose another name"):
        Meeting.at(url(tmp_path / "shared.db"), "theirs").described()


def test_the_database_of_a_study_that_runs_alone_is_not_shared(tmp_path: Path) -> None:
    Ledger(tmp_path / "study.db", "small", space(), [record(0, baseline())])
    with pytest.raises(SpectuneError, match=r"runs alone; to share it.*SPACE --study small --storage URL"):
        Meeting.at(url(tmp_path / "study.db"), "small", begins=False).require()


def test_of_two_that_begin_a_study_the_first_decides(tmp_path: Path) -> None:
    address = Address.of(url(tmp_path / "shared.db"))
    storage = open_storage(address)
    first, second = described(60), described(90)
    assert begin(storage, address, "one", space(), first) == first
    assert begin(storage, address, "one", space(), second) == first
    assert find(storage, address, "one") == first


def test_a_search_that_is_overtaken_at_its_start_joins_what_has_begun(tmp_path: Path) -> None:
    Member(tmp_path / "shared.db", "a")
    meeting, folder = Meeting.at(url(tmp_path / "shared.db"), STUDY), StudyFolder(tmp_path / "late")

    def begun(sampler: str) -> list[str]:
        return Comer(folder, space(trials=99), engine(), sampler, None, launches=True).begin(meeting, 60)

    with pytest.raises(SpectuneError, match="begun with --sampler guided, so tpe cannot join it"):
        begun("tpe")
    assert meeting.require() == described()
    assert "the budget of the shared study is the one given now" in " ".join(begun("guided"))
    assert "trials: 99" in meeting.require().resolved


def test_only_the_budget_of_a_shared_study_may_change() -> None:
    refuse_other_space(described(), STUDY, space(trials=99))
    other = space(space().text.replace("from: 1, to: 4", "from: 1, to: 5"))
    with pytest.raises(SpectuneError, match=r"begun with another search space.*speculative-num-steps.*--study NAME"):
        refuse_other_space(described(), STUDY, other)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "not a study of spectune"),
        ({"schema": 99, "spectune": "9.9"}, r"newer spectune \(9.9\)"),
        ({"schema": 1}, "is damaged"),
        ({**described().to_json(), "takeover_s": "soon"}, "takeover_s must be int"),
        ({**described().to_json(), "belongings": {"../outside": "x"}}, "outside of its folder"),
        ({**described().to_json(), "belongings": {"": "x"}}, "outside of its folder"),
        ({**described().to_json(), "belongings": {"a\0b": "x"}}, "outside of its folder"),
        ({**described().to_json(), "belongings": {"\x1b[31m": "x"}}, "outside of its folder"),
        ({**described().to_json(), "takeover_s": -1}, "takeover_s cannot be -1"),
        ({**described().to_json(), "takeover_s": 10**30}, "takeover_s cannot be"),
    ],
)
def test_a_description_that_cannot_be_used(content: object, words: str) -> None:
    with pytest.raises(SpectuneError, match=words):
        Description.from_json(content, "the study small")


def test_a_description_is_read_back() -> None:
    assert Description.from_json(described().to_json(), "the study small") == described()


def test_who_may_only_read_learns_it_before_anything_is_launched(tmp_path: Path) -> None:
    Member(tmp_path / "shared.db", "a")
    worker = Worker(STUDY, StudyFolder(tmp_path / "b"), FileLock(tmp_path / "lock"), "b", "here")
    meeting = Meeting.at(f"sqlite:///file:{tmp_path}/shared.db?mode=ro&uri=true", STUDY)
    assert meeting.require() == described()
    Meeting.at(url(tmp_path / "shared.db"), STUDY).sign_on(worker, engine())  # it might write before
    with pytest.raises(SpectuneError, match="readonly database"):
        meeting.sign_on(worker, engine())


def test_a_database_that_hangs_is_away_and_keeps_nobody(tmp_path: Path) -> None:
    told: list[str] = []
    hangs = threading.Event()

    async def asked() -> None:
        line = Line(Address.of(url(tmp_path / "shared.db")), told.append, patience_s=0.05)
        with pytest.raises(Unanswered):
            await line.once(hangs.wait)
        assert not line.quiet_for(0.0)
        assert await line.call(lambda: 7) == 7

    asyncio.run(asked())  # ends although the first call has not
    hangs.set()
    assert "does not answer: no answer within 0.05 s" in told[0]
    assert "answers again" in told[1]


def test_a_call_that_is_given_up_as_its_answer_comes_is_given_up(tmp_path: Path) -> None:
    async def asked() -> bool:
        call = asyncio.create_task(Line(Address.of(url(tmp_path / "shared.db")), print).once(lambda: 7))
        await asyncio.sleep(0)  # its thread has begun
        for thread in threading.enumerate():
            if thread.name == "database":
                thread.join()
        await asyncio.sleep(0)  # the answer is there, and nobody has read it
        call.cancel()
        await asyncio.wait([call])
        return call.cancelled()

    assert asyncio.run(asked())


def test_a_database_that_became_read_only_is_not_waited_for(tmp_path: Path) -> None:
    a = Member(tmp_path / "shared.db", "a")
    reader = Meeting.at(f"sqlite:///file:{tmp_path}/shared.db?mode=ro&uri=true", STUDY)
    line = Line(reader.address, a.told.append)
    beat = SharedTrials(reader.storage, STUDY, space(), "a", 60)
    with pytest.raises(SpectuneError, match=r"readonly database; finished launches are kept"):
        asyncio.run(line.call(lambda: beat.claim(step(0))))
    assert a.told == []
