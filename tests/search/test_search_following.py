"""A search that starts workers and launches nothing itself."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from forked import spectune
from search_simulated import Silent, write

from spectune.engines.open import open_engine
from spectune.errors import SpectuneError
from spectune.executors import LocalExecutor, WorkerCommand
from spectune.search import StudyFolder, run_study
from spectune.search.beginning import open_study
from spectune.search.commentary import Remarks
from spectune.search.shared.following import WORKERS, Following
from spectune.search.storage.book import LocalBook
from spectune.search.study import Ended
from spectune.space import load_space


class Followed:
    """A study in virtual time, and what is said while its workers are followed."""

    def __init__(self, folder: Path) -> None:
        self.space = load_space(write(folder))
        self.engine = open_engine(self.space)
        self.folder = StudyFolder(folder / "studies/sim")
        self.watcher = Silent()
        open_study(self.folder, self.space, self.engine)

    def alone(self) -> Ended:
        """Run the study here."""
        return asyncio.run(run_study(self.folder, self.space, self.engine, Silent()))

    def by(self, command: WorkerCommand, count: int) -> Ended:
        """Run it by workers."""
        book = LocalBook(self.folder, self.space)
        following = Following(self.folder, self.space, self.engine, self.watcher, book, sampler="guided")
        return asyncio.run(following.run(LocalExecutor(), command, count))


def test_workers_that_all_fail_are_told_with_their_last_words(tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    fails = WorkerCommand([sys.executable, "-c", "print('first'); print('there is no GPU'); exit(2)"])
    with pytest.raises(SpectuneError, match=r"nobody works any more: 2 workers ended \(exit code 2\).*there is no GPU"):
        followed.by(fails, 2)
    logs = sorted((followed.folder.root / WORKERS).iterdir())
    assert [log.read_text() for log in logs] == ["first\nthere is no GPU\n"] * 2
    assert {f"worker {n} of 2: exit code 2; it printed to {logs[n - 1]}" for n in (1, 2)} <= set(followed.watcher.lines)


def test_a_study_that_has_ended_needs_no_workers(tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    alone = followed.alone()
    again = followed.by(WorkerCommand(["/nowhere/spectune"]), 2)
    assert again.stop == alone.stop
    assert [record.trial for record in again.records] == [record.trial for record in alone.records]
    assert not (followed.folder.root / WORKERS).exists()


def test_a_search_by_workers_on_this_machine(tmp_path: Path) -> None:
    write(tmp_path)
    words = ["search", "sim.yaml", "--storage", "sqlite:///study.db", "--executor", "local", "--nodes", "2"]
    ran = spectune(*words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "worker 2 of 2: exit code 0" in ran.stderr
    told = ran.stderr.splitlines()
    made = [at for at, line in enumerate(told) if line.strip().startswith("[") and "] begun on " not in line]
    assert len(made) == 6
    for at in made:
        assert "tok/s a request" in told[at + 1], "the figures of what a worker has made"
    far = [line for line in told if " of 6 launches done" in line]
    assert "    6 of 6 launches done" in far[-1]
    assert len(far) == len(set(far)), "nothing is said twice"
    folders = [StudyFolder(tmp_path / "studies" / name) for name in ("sim", "sim.worker2", "sim.worker3")]
    first, *others = [folder.records() for folder in folders]
    assert [record.trial for record in first] == list(range(6))
    assert others == [first, first]
    assert folders[0].summary_file.is_file()


def test_a_launch_that_nobody_saw_begin_is_told_with_its_reason(tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    first, second, *_ = followed.alone().records
    remarks = Remarks(followed.watcher, followed.space, ())
    remarks.begun([first.step])
    remarks.elsewhere([first, second])
    begun, *ended = followed.watcher.lines
    assert begun.endswith(f": {first.why}")
    assert ended[0].endswith(f"on {first.place or 'another machine'}: ok")
    assert ended[1].endswith(f": {second.why}: ok")
