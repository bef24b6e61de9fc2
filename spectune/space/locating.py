"""From what a person types to the file of a search space: a path, or the name of one that is shipped."""

from __future__ import annotations

import os
from pathlib import Path

from spectune.errors import SpectuneError
from spectune.space.names import nearest

_FOLDER = "search_spaces"
_SUFFIX = ".yaml"


def shipped_folder() -> Path | None:
    """Return the folder of shipped spaces: inside the package when installed from a wheel, else beside it."""
    package = Path(__file__).resolve().parents[1]
    return next((folder for folder in (package / _FOLDER, package.parent / _FOLDER) if folder.is_dir()), None)


def shipped_spaces() -> tuple[str, ...]:
    """Return the bare names of all shipped spaces, sorted."""
    folder = shipped_folder()
    return tuple(sorted(file.stem for file in folder.glob(f"*{_SUFFIX}"))) if folder else ()


def find_space_file(name: str | Path) -> Path:
    """Return the file that `name` stands for.

    Args:
        name: A path, or `quickstart`, `quickstart.yaml` or `search_spaces/quickstart.yaml` for a shipped space.

    Raises:
        SpectuneError: There is no such file; the message lists the shipped names.
    """
    given = Path(name)
    for path in (given, given.with_name(given.name + _SUFFIX) if given.name else given, *_shipped(given)):
        if os.path.isfile(path):  # noqa: PTH113  # as below
            return path
    if os.path.isdir(given):  # noqa: PTH112  # Path.is_dir raises on names that are too long
        raise SpectuneError(f"{given} is a folder, not a search space file")
    names = shipped_spaces()
    match = nearest(given.stem, names)
    advice = f"; did you mean '{match}'?" if match else ""
    raise SpectuneError(f"there is no search space file {given}{advice}; shipped spaces: {', '.join(names) or 'none'}")


def _shipped(given: Path) -> list[Path]:
    folder = shipped_folder()
    if folder is None or given.is_absolute() or given.parent not in (Path(), Path(_FOLDER)):
        return []
    return [folder / given.name, folder / f"{given.name}{_SUFFIX}"] if given.name else []
