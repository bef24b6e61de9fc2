"""The studies of the current folder, and what one may be called."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from spectune import files
from spectune.errors import SpectuneError
from spectune.machine import users_of
from spectune.search.storage.launch_files import SCRIPT

STUDIES = Path("studies")
LOCK = ".lock"  # in its folder, held as long as a search runs the study
WORKER_FILE = "worker.json"
"""Says of a study folder that it is a worker's copy of a shared study."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class StudyHere:
    """A study of the current folder.

    Attributes:
        folders: Its folder; of a shared study every worker's that works here, the one of the study's own name first.
        workers: How many of them have made launches; None where the study is not shared.
    """

    folders: tuple[Path, ...]
    workers: int | None = None

    @property
    def name(self) -> str:
        """What commands call it."""
        return self.folders[0].name


def check_name(name: str) -> str:
    """Return `name` if it can be a folder's name.

    Raises:
        SpectuneError: When it is too long, or holds anything but letters, digits, dot, dash and underscore.
    """
    if not _NAME.fullmatch(name):
        raise SpectuneError(
            f"a study's name is made of letters, digits, '.', '-' and '_', 100 at most, or is the path of an existing "
            f"study, but got {name!r}"
        )
    return name


def all_studies() -> list[StudyHere]:
    """Return the studies by name, a shared one once."""
    shared: dict[str, list[Path]] = {}
    found: list[StudyHere] = []
    for folder in (path.parent for path in sorted(STUDIES.glob("*/space.yaml"))):
        study = shared_study(folder)
        if study is None:
            found.append(StudyHere((folder,)))
        else:
            shared.setdefault(study, []).append(folder)
    for study, folders in shared.items():
        folders.sort(key=lambda folder: folder.name != study)
        found.append(StudyHere(tuple(folders), sum(map(_made_launches, folders))))
    return sorted(found, key=lambda study: study.name)


def running_studies() -> list[tuple[StudyHere, set[int]]]:
    """Return the studies that somebody runs, each with the processes that hold a lock of it."""
    locks = {os.path.realpath(folder / LOCK): study for study in all_studies() for folder in study.folders}
    held: dict[StudyHere, set[int]] = {}
    for path, pids in users_of(locks.keys()).items():
        held.setdefault(locks[path], set()).update(pids)
    return [(study, pids) for study, pids in held.items() if pids]


def shared_study(folder: Path) -> str | None:
    """Return the shared study that a folder is a copy of; None where it is none."""
    study = worker_of(folder).get("study")
    return study if isinstance(study, str) else None


def worker_of(folder: Path) -> dict[str, object]:
    """Return what a folder says of the worker that it belongs to; nothing where it is no worker's."""
    try:
        content = files.read_json(folder / WORKER_FILE)
    except SpectuneError:
        return {}
    return content if isinstance(content, dict) else {}


def _made_launches(folder: Path) -> bool:
    """Whether its worker has made launches, and has not only copied those of others."""
    return any(folder.glob(f"trials/*/{SCRIPT}"))
