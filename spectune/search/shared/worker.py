"""Who a worker is, and the folder it has to itself."""

from __future__ import annotations

import contextlib
import platform
import re
import secrets
import shutil
from dataclasses import dataclass

from filelock import FileLock

from spectune import files
from spectune.errors import SpectuneError
from spectune.machine import here
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.studies import WORKER_FILE, shared_study, worker_of

SCHEMA = 1
_PLACE = re.compile(r"[A-Za-z0-9._:,-]{1,100}")
MOST_WORKERS = 100  # that share a folder of studies


@dataclass(frozen=True)
class Worker:
    """One process that makes launches of a shared study.

    Attributes:
        study: Name of the shared study.
        folder: Its own copy of the study.
        lock: Held as long as it lives.
        name: No other worker has it at the same time; the same folder on the same machine gives the same one, so that
            a worker that starts again knows what it left behind.
        place: Where its launches are made.
        fresh: Whether the folder was made for it.
    """

    study: str
    folder: StudyFolder
    lock: FileLock
    name: str
    place: str
    fresh: bool = False

    @classmethod
    def of(cls, study: str, place: str = "") -> Worker:
        """Take the study's folder here; the next one where another worker of the study has it.

        Args:
            study: Name of the shared study.
            place: Where its launches are made; by default this machine, by its name.

        Raises:
            SpectuneError: No folder can be written, or the place cannot be shown as it is.
        """
        if place and not _PLACE.fullmatch(place):
            raise SpectuneError(f"a place is made of at most 100 letters, digits and .-_:, but got {place!r}")
        for number in range(1, MOST_WORKERS + 1):
            folder = StudyFolder.named(study if number == 1 else f"{study}.worker{number}")
            if number > 1 and folder.exists() and shared_study(folder.root) != study:
                continue
            fresh = not folder.root.exists()
            lock = folder.try_lock()
            if lock is not None:
                return cls(study, folder, lock, _name(folder, study), place or here(), fresh)
        raise SpectuneError(f"{MOST_WORKERS} workers of the study {study} run here; start more in another folder")

    def keep(self) -> None:
        """Write down in the folder whose it is: from now on nobody goes on with it alone."""
        content = {"schema": SCHEMA, "study": self.study, "host": platform.node(), "worker": self.name}
        files.write_json(self.folder.root / WORKER_FILE, content)

    def leave(self) -> None:
        """Give the folder free; one that was made for a study which was never taken up goes with it."""
        if self.fresh and not self.folder.exists():
            shutil.rmtree(self.folder.root, ignore_errors=True)
            with contextlib.suppress(OSError):
                self.folder.root.parent.rmdir()  # unless there are other studies
        self.lock.release()


def refuse_shared(folder: StudyFolder) -> None:
    """Make sure that a study is not gone on with alone while others share it.

    Raises:
        SpectuneError: It is a copy of a shared one.
    """
    study = shared_study(folder.root)
    if study is not None:
        raise SpectuneError(
            f"{folder.root} is a copy of the shared study {study}: go on with --storage URL, or, if the database is "
            f"gone for good, remove {folder.root / WORKER_FILE} and go on with this copy alone"
        )


def _name(folder: StudyFolder, study: str) -> str:
    """Return the worker's name; a folder that was copied from another machine gets a new one."""
    host, kept = platform.node(), worker_of(folder.root)
    name = kept.get("worker")
    known = isinstance(name, str) and _PLACE.fullmatch(name) is not None
    if known and (kept.get("host"), kept.get("study")) == (host, study):
        return str(name)
    return f"{host}-{secrets.token_hex(4)}"
