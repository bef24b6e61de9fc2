"""Locks that every spectune on this machine respects, whoever runs it; they end with their holder, however it ends.

Not `filelock`: it empties the file whenever somebody tries the lock, and what stands in it says who holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from spectune.errors import SpectuneError
from spectune.printable import printable
from spectune.serving.held import Held

FOLDER_VARIABLE = "SPECTUNE_LOCKS"
SUFFIX = ".lock"
MOST_BYTES = 1000  # of a holder's words, which anybody may have written
SHOWN = 80  # characters of a study's name
EVERYBODY = 0o1777  # as /tmp: all may make files, and remove only their own
_FOR_ALL = 0o666


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, by its own words.

    Attributes:
        pid: Its process; None where it has not said so.
        study: What it launches for; empty where it has not said so.
    """

    pid: int | None = None
    study: str = ""

    def __str__(self) -> str:
        who = "another spectune" if self.pid is None else f"spectune (pid {self.pid})"
        return f"{who} for the study {self.study}" if self.study else who


class MachineLock(Held):
    """One lock, held until `release`, or the end of this object or process."""

    def __init__(self, path: Path, descriptor: int, *, file_stays: bool) -> None:
        """Use `try_lock`."""
        self._path, self._descriptor, self._file_stays = path, descriptor, file_stays

    def release(self) -> None:
        """Give it back, and leave no file unless that is to stay; doing it twice is harmless."""
        if self._descriptor < 0:
            return
        if not self._file_stays:
            with contextlib.suppress(OSError):  # made by another user, whose spectune was killed
                self._path.unlink()
        os.close(self._descriptor)
        self._descriptor = -1

    def __del__(self) -> None:
        self.release()


def lock_folder() -> Path:
    """Return the folder of this machine's locks, the same for all its users: TMPDIR may differ between them."""
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(os.path.realpath(named))  # of links that go round in circles too: using it says what is wrong
    system = Path("/run/lock")
    with contextlib.suppress(OSError):
        if stat.S_IMODE(system.stat().st_mode) == EVERYBODY:
            return system / "spectune"
    return Path("/tmp/spectune-locks")  # noqa: S108 (it is checked before it is used)


def try_lock(name: str, study: str, folder: Path | None = None, *, file_stays: bool = False) -> MachineLock | None:
    """Take a lock for this process; None if somebody has it.

    Args:
        name: What is locked.
        study: Told to whoever else wants it.
        folder: Where the locks are, `lock_folder()` unless said otherwise; it must be local to this machine.
        file_stays: Whether its file outlives it, which then tells when it was taken last.

    Raises:
        SpectuneError: There can be no locks in that folder.
    """
    path = _path(name, folder or lock_folder())
    try:
        _make(path.parent)
        descriptor = _locked(path)
    except OSError as error:
        raise SpectuneError(
            f"cannot lock {path}: {error.strerror or error}. Make {path.parent} a folder that everybody may write to "
            f"(chmod 1777), or name another, the same for all users, in {FOLDER_VARIABLE}"
        ) from None
    if descriptor is None:
        return None
    with contextlib.suppress(OSError):  # on a full disk it is held all the same, by somebody without a name
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(Holder(os.getpid(), study[:SHOWN]))).encode(), 0)
    return MachineLock(path, descriptor, file_stays=file_stays)


def holder_of(name: str, folder: Path | None = None) -> Holder:
    """Return who took a lock last, which somebody else has now."""
    return _read(_path(name, folder or lock_folder()))


def last_taken_s(name: str, folder: Path | None) -> float:
    """Return when a lock whose file stays was taken last, in seconds of the epoch; 0 where it never was."""
    try:
        return _path(name, folder or lock_folder()).lstat().st_mtime
    except OSError:
        return 0.0


def held_locks(folder: Path | None = None) -> dict[str, Holder]:
    """Return every lock that is held now and its holder, by its file's name; files that nobody holds do not count."""
    found = {}
    for path in sorted((folder or lock_folder()).glob(f"*{SUFFIX}")):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | _SAFELY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                found[path.name.removesuffix(SUFFIX)] = _read(path)
            finally:
                os.close(descriptor)
    return found


def file_name(name: str) -> str:
    """Return a lock's name as its file has it."""
    return re.sub(r"[^A-Za-z0-9.-]", "_", name)


_SAFELY = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # not handed on, through no link, never waiting for a pipe


def _path(name: str, folder: Path) -> Path:
    return folder / (file_name(name) + SUFFIX)


def _make(folder: Path) -> None:
    if not folder.exists():
        with contextlib.suppress(FileExistsError):
            folder.mkdir(parents=True)
            folder.chmod(EVERYBODY)  # whatever the umask
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise NotADirectoryError(0, "it is a link, or no folder")


def _locked(path: Path) -> int | None:
    """Return a descriptor that holds the lock of the file that is at `path` now, None if another one does."""
    for descriptor in _opened(path):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        here = os.fstat(descriptor)
        if not stat.S_ISREG(here.st_mode) or here.st_nlink > 1:
            os.close(descriptor)
            raise OSError(0, "it is no lock of spectune's; remove it")
        if here.st_nlink and os.path.samestat(here, path.lstat()):
            return descriptor
        os.close(descriptor)  # its holder removed it in the meantime
    return None


def _opened(path: Path) -> Iterator[int]:
    """Yield descriptors of the file at a path, made if there is none, as often as asked."""
    while True:
        # An existing file is opened without O_CREAT, which the kernel may refuse for another user's in such a folder.
        with contextlib.suppress(FileNotFoundError):
            yield os.open(path, os.O_RDWR | _SAFELY)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFELY, _FOR_ALL)
            os.fchmod(descriptor, _FOR_ALL)
            yield descriptor


def _read(path: Path) -> Holder:
    try:
        descriptor = os.open(path, os.O_RDONLY | _SAFELY)
        try:
            told = json.loads(os.read(descriptor, MOST_BYTES))
        finally:
            os.close(descriptor)
        pid, study = told["pid"], told["study"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return Holder()
    return Holder(pid if isinstance(pid, int) else None, printable(str(study), SHOWN))
