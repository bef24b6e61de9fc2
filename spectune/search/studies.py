"""The studies of the current folder, and what one may be called."""

from __future__ import annotations

import os
import re
from pathlib import Path

from spectune.errors import SpectuneError
from spectune.machine import users_of

STUDIES = Path("studies")
LOCK = ".lock"  # in its folder, held as long as a search runs the study
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check_name(name: str) -> str:
    """Return `name` if it can be a folder's name.

    Raises:
        SpectuneError: When it holds anything but letters, digits, dot, dash and underscore.
    """
    if not _NAME.fullmatch(name):
        raise SpectuneError(
            f"a study's name is made of letters, digits, '.', '-' and '_', or is the path of an existing study, "
            f"but got {name!r}"
        )
    return name


def all_studies() -> list[Path]:
    """Return the folders of the studies, by name."""
    return [path.parent for path in sorted(STUDIES.glob("*/space.yaml"))]


def running_studies() -> list[tuple[Path, set[int]]]:
    """Return the folders of the studies that somebody runs, each with the processes that hold its lock."""
    locks = {os.path.realpath(study / LOCK): study for study in all_studies()}
    return [(locks[path], pids) for path, pids in users_of(locks.keys()).items() if pids]
