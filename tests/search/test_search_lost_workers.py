"""Four workers and a real PostgreSQL: one killed, one cut off for a while, the database restarted; nothing is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from search_workers import Started, all_wait, held_back, records, space, written

from benchmarks.services.daemon import eventually
from benchmarks.services.forwarder import Forwarder
from benchmarks.services.postgresql import PASSWORD, PostgreSQL

pytestmark = pytest.mark.services
LAUNCHES = 12
AWAY = "does not answer"
PATIENCE_S = 120.0  # nothing is judged by it


@pytest.fixture
def forwarder(postgresql: PostgreSQL) -> Iterator[Forwarder]:
    forwarder = Forwarder(postgresql.port)
    yield forwarder
    forwarder.close()


def launching(worker: Started) -> bool:
    """Whether a launch of the worker is under way: begun and not finished."""
    trials = (worker.folder / "studies/sim/trials").glob("*")
    return any((trial / "server.log").exists() and not (trial / "result.json").exists() for trial in trials)


def test_no_launch_is_lost_and_none_is_made_twice(tmp_path: Path, postgresql: PostgreSQL, forwarder: Forwarder) -> None:
    storage = postgresql.new_database("lost_workers")
    through = postgresql.url("lost_workers", port=forwarder.port)
    space(tmp_path / "first", trials=LAUNCHES)
    with contextlib.ExitStack() as running:
        search = ("search", "sim.yaml", "--takeover-after", "20s")

        def join(name: str, url: str) -> Started:
            return running.enter_context(Started(tmp_path / name, "worker", "sim", storage=url))

        with held_back(storage), held_back(through):  # each worker has the database's address as it was given
            first = running.enter_context(Started(tmp_path / "first", *search, storage=storage))
            assert first.says("is shared through"), first.said
            killed, cut, other = join("killed", storage), join("cut", through), join("other", storage)
            assert all_wait(first, killed, cut, other), first.said + killed.said + cut.said + other.said

        assert eventually(lambda: launching(killed), PATIENCE_S), killed.said
        killed.process.kill()

        assert eventually(lambda: launching(cut), PATIENCE_S), cut.said
        forwarder.cut()
        assert cut.says(AWAY), cut.said
        forwarder.mend()
        assert cut.says("answers again"), cut.said
        assert AWAY not in other.said

        postgresql.crash()
        assert all(worker.says(AWAY) for worker in (first, other))
        postgresql.start()
        assert first.ends() in {0, 1}, first.said  # answered or not: a busy machine's figures are not judged here
        assert [worker.ends() for worker in (cut, other)] == [0, 0], cut.said + other.said

        again = join("killed", storage)
        assert again.ends() == 0, again.said

    folders = [tmp_path / name for name in ("first", "killed", "cut", "other")]
    assert [record.trial for record in records(folders[0])] == list(range(LAUNCHES))
    assert len({tuple(written(folder).items()) for folder in folders}) == 1
    assert not [second for folder in folders for second in folder.glob("studies/*/trials-second")]
    assert postgresql.sql("SELECT count(*) FROM trials WHERE state = 'COMPLETE'", "lost_workers") == str(LAUNCHES)
    assert all(PASSWORD not in file.read_text(errors="replace") for file in tmp_path.rglob("*") if file.is_file())
