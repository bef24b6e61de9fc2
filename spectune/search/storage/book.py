"""Where the launches of a study are written down: by one process in its folder, or by many in a database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from spectune.errors import SpectuneError
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.ledger import Ledger
from spectune.search.storage.records import Launch, TrialRecord
from spectune.search.storage.steps import Step
from spectune.space import SearchSpace


@dataclass(frozen=True)
class Standing:
    """Where a study stands: what the plan decides on.

    Attributes:
        records: All finished launches.
        running: Launches that others have under way.
        interrupted: Launches that were begun, never finished, and that nobody has under way.
        lost: How many workers were lost over each of these, by its number; none where whoever began it gave it back.
        set_aside: Launches that the space has no place for now; they may come back, under their numbers.
    """

    records: Sequence[TrialRecord]
    running: Sequence[Step] = ()
    interrupted: Sequence[Step] = ()
    lost: Mapping[int, int] = field(default_factory=dict)
    set_aside: Sequence[Launch] = ()

    @property
    def launch_index(self) -> int:
        """What the next launch is in the order of all that were made, those that were set aside among them."""
        made = (one.launch_index for one in (*self.records, *self.set_aside) if isinstance(one, TrialRecord))
        return max(made, default=-1) + 1


class Book(Protocol):
    """What a study asks of the place where its launches are written down.

    Whatever happens to a process, a launch that was finished is read back by the next one, exactly once; one that was
    not is read back as interrupted.
    """

    @property
    def study(self) -> str:
        """What all that make launches of this study on one machine call it, and no other study is called."""
        ...

    @property
    def place(self) -> str:
        """Where this process makes its launches: a machine, or a group of its GPUs; empty where there is only one."""
        ...

    def settle(self, place: str) -> None:
        """Make launches on this machine, or on this group of its GPUs, from now on."""
        ...

    async def read(self) -> Standing:
        """Return where the study stands now."""
        ...

    async def news(self, since: Standing) -> Standing:
        """Return where the study stands as soon as that is not what it was; for whom has nothing to do until then."""
        ...

    def claimed(self, step: Step) -> AbstractAsyncContextManager[bool]:
        """Take a launch for this process as long as the context lasts; yields False when another one was faster.

        What is not finished when the context ends is given back.
        """
        ...

    async def finish(self, record: TrialRecord) -> None:
        """Write down what came of the launch that was claimed; it is on this machine's disk before anything else."""
        ...


class LocalBook:
    """One process: the study's folder, and Optuna's storage beside it."""

    def __init__(self, folder: StudyFolder, space: SearchSpace) -> None:
        """Read what is there.

        Raises:
            SpectuneError: A record is damaged.
        """
        self._folder, self._space, self._identity = folder, space, folder.identity()
        self._records, self._interrupted = folder.records(), folder.interrupted()
        self._set_aside = tuple(folder.set_aside())
        self._ledger: Ledger | None = None

    @property
    def study(self) -> str:
        """The folder: nobody else works in it."""
        return self._folder.realpath

    @property
    def place(self) -> str:
        """Nowhere in particular: there is only one."""
        return ""

    def settle(self, place: str) -> None:
        """Do nothing: a study that is made in one place does not name it."""

    async def read(self) -> Standing:
        """Return where the study stands; nobody else has anything under way."""
        await asyncio.sleep(0)  # in virtual time nothing else would ever let a signal through
        return Standing(tuple(self._records), (), tuple(self._interrupted), set_aside=self._set_aside)

    async def news(self, since: Standing) -> Standing:
        """Never called: a plan waits for others only, and there are none."""
        raise AssertionError(f"nobody will add to these {len(since.records)} launches")

    @asynccontextmanager
    async def claimed(self, step: Step) -> AsyncIterator[bool]:
        """Enter the launch in Optuna's storage, which is made anew first where it is not up to the records."""
        self._require_same_folder()
        if self._ledger is None:
            self._ledger = Ledger(self._folder.ledger, self._folder.name, self._space, self._records)
        self._ledger.begin(step, self._records)
        self._interrupted = []
        yield True

    async def finish(self, record: TrialRecord) -> None:
        """Write the record, then tell Optuna."""
        assert self._ledger is not None, "a launch is claimed before it is finished"
        self._require_same_folder()
        self._folder.write_result(record)
        self._ledger.finish(record, self._records)
        self._records.append(record)

    def _require_same_folder(self) -> None:
        """Make sure that the folder is the one whose launches were read: another search may have begun in its place.

        Raises:
            SpectuneError: It was removed, moved or replaced.
        """
        if self._folder.identity() != self._identity:
            raise SpectuneError(
                f"{self._folder.root} was removed, moved or replaced while this search ran, so nothing more is written "
                "there; bring it back, or begin anew, with the same command"
            )
