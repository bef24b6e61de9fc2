"""Two workers that share a study, what they say when something breaks, and what they must have in common in the end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.faults.laboratory import NAME, SEARCH, Bench
from benchmarks.faults.row import Row
from benchmarks.services.daemon import eventually
from spectune.search.shared.mirror import SECOND
from spectune.search.shared.storage import Address, open_storage

LAUNCHES = 8
TAKEOVER_S = 12
PATIENCE_S = 300.0  # for what must come; nothing is judged by it
AWAY, BACK = "does not answer", "answers again"
ENDED = {0, 1}  # with an answer, or without: a busy machine's figures are not judged here


class Unmet(Exception):
    """What had to come did not come; says what."""


class Worker:
    """One worker, and the folder it has to itself."""

    def __init__(self, bench: Bench, words: tuple[str, ...], storage: str) -> None:
        """Start it.

        Args:
            bench: Its folder.
            words: Its command.
            storage: URL of the database.
        """
        self.bench, self._words, self._storage = bench, words, storage
        bench.folder.mkdir(parents=True, exist_ok=True)
        self._file = bench.folder / "said"
        self.start()

    def start(self) -> None:
        """Start its command, once more after it has ended."""
        with self._file.open("ab") as said:
            self.process = subprocess.Popen(
                self._words, cwd=self.bench.folder, env=self.bench.environment(SPECTUNE_STORAGE=self._storage),
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
            )  # fmt: skip

    @property
    def said(self) -> str:
        """All it has printed."""
        return self._file.read_text(errors="replace")

    def says(self, words: str) -> None:
        """Wait until it prints something.

        Raises:
            Unmet: It does not.
        """
        self.comes(lambda: words in self.said, f"say {words!r}")

    def launching(self) -> Path | None:
        """Return the folder of the launch it has begun and not finished."""
        begun = self.bench.study.root.glob("trials/*/server.log")
        return next((log.parent for log in begun if not (log.parent / "result.json").exists()), None)

    def launches(self) -> Path:
        """Wait until it makes a launch, and return its folder."""
        self.comes(lambda: self.launching() is not None, "begin a launch")
        trial = self.launching()
        if trial is None:
            raise Unmet("a launch was over at once")
        return trial

    def finishes(self, trial: Path | None = None) -> None:
        """Wait until it makes no launch, or until it has the record of one, whoever finished that."""
        if trial is None:
            self.comes(lambda: self.launching() is None, "finish its launch")
        else:
            result = self.bench.study.root / "trials" / trial.name / "result.json"
            self.comes(result.exists, f"have the record of {trial.name}")

    def comes(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something.

        Raises:
            Unmet: It does not come, or the worker has ended before.
        """
        eventually(lambda: condition() or self.process.poll() is not None, PATIENCE_S)
        if not condition():
            raise Unmet(f"{self.bench.folder.name} did not {what}: …{self.said[-300:]}")

    def ends(self) -> int:
        """Wait for its end, and return its exit code.

        Raises:
            Unmet: It goes on and on.
        """
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Unmet(f"{self.bench.folder.name} does not end: …{self.said[-300:]}") from None


class Crew:
    """The search that begins a study, and the worker that joins it; both are gone when the context ends."""

    def __init__(self, folder: Path, storage: str, joining: str | None = None) -> None:
        """Start both.

        Args:
            folder: Where both have a folder.
            storage: URL of the database.
            joining: The URL that the second one has; the same where there is none.
        """
        self._storage = storage
        bench = Bench(folder / "first")
        bench.write(virtual=False, trials=LAUNCHES, startup="120s", parallel=2)
        self.first = Worker(bench, (*SEARCH, "--takeover-after", f"{TAKEOVER_S}s"), storage)
        try:
            self.first.says("is shared through")
            words = (sys.executable, "-m", "spectune", "worker", NAME)
            self.second = Worker(Bench(folder / "second", bench.mark), words, joining or storage)
        except BaseException:
            self.first.process.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()

    @property
    def workers(self) -> tuple[Worker, Worker]:
        """Both of them."""
        return self.first, self.second

    def at_work(self) -> None:
        """Wait until both make a launch."""
        for worker in (*self.workers, self.first):  # the first one's may have ended while the second's began
            worker.launches()

    def idle(self) -> None:
        """Wait until neither makes a launch: while the database is away, neither begins another one."""
        for worker in self.workers:
            worker.finishes()

    def all_say(self, words: str) -> float:
        """Wait until both have said something; returns when, by the monotonic clock."""
        for worker in self.workers:
            worker.says(words)
        return time.monotonic()

    def taken_over(self, trial: Path) -> float:
        """Wait until the first one makes a launch that the second had begun; returns when, by the monotonic clock."""
        mine = self.first.bench.study.root / "trials" / trial.name
        self.first.comes(mine.exists, f"take over {trial.name}")
        return time.monotonic()

    def judged(self, name: str, detected_s: float | None, within_s: float, *, second: int = 0) -> Row:
        """Wait until both have ended, and return the row.

        Args:
            name: Of the fault.
            detected_s: How long it took to be noticed.
            within_s: How long it may.
            second: How many launches may have been made twice, because their worker was silent for too long.
        """
        wrong = []
        first, other = self.first.ends(), self.second.ends()
        if first not in ENDED or other != 0:
            wrong.append(f"they ended with {first} and {other}: …{self.first.said[-200:]} …{self.second.said[-200:]}")
        wrong += ["a traceback was shown" for worker in self.workers if "Traceback" in worker.said]
        if detected_s is None or detected_s > within_s:
            wrong.append(f"noticed later than after {within_s:g} s")
        intact, bench = self._intact(second), self.first.bench
        left, ports = bench.processes_left(), bench.ports_left()
        continued = first in ENDED and other == 0
        ok = not wrong and intact and not left and not ports
        return Row(name, detected_s, None, continued, intact, left, ports, ok, "; ".join(wrong))

    def _intact(self, second: int) -> bool:
        """Whether every launch is there once, the same in both folders and in the database."""
        one, other = (worker.bench.results() for worker in self.workers)
        numbers = [record.trial for record in self.first.bench.records()]
        unfinished = [worker for worker in self.workers if worker.bench.study.interrupted()]
        twice = [trial for worker in self.workers for trial in worker.bench.study.root.glob(f"{SECOND}/*")]
        told = _told(self._storage)
        return numbers == list(range(LAUNCHES)) and one == other and not unfinished and len(twice) <= second and told


def _told(storage: str) -> bool:
    """Whether the database has every launch, finished once."""
    from optuna.trial import TrialState

    opened = open_storage(Address.of(storage))
    study = opened.get_study_id_from_name(NAME)
    return len(opened.get_all_trials(study, states=(TrialState.COMPLETE,))) == LAUNCHES
