"""What earlier exports left in a folder: what a user asked for stays, what would mislead goes.

Two requests never write the same file: the answer's files are named by their candidates, a pick's by the pick. A file
whose candidate is no longer what its name was asked for is out of date, in whatever format; any other stays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from spectune.export.formats import Format
from spectune.export.header import MARK, candidate_words
from spectune.search.answer.picks import Need
from spectune.space import Candidate

HEAD_LINES = 5
"""The mark and the candidate stand above this line in every format."""
_PICK = re.compile(rf"{'|'.join(Need)}|trial-\d+")
_NAMED = re.compile(rf"launch-(.+?)\.(?:{'|'.join(re.escape(form.ending) for form in Format)})")


def remove_outdated(
    folder: Path, current: Mapping[str, Candidate], written: Collection[Path], pick: str | None
) -> None:
    """Remove what earlier exports of the same request left of other candidates.

    Args:
        folder: Of the files.
        current: Name → candidate, as just asked for.
        written: The files just written, which stay.
        pick: Name of the pick that was asked for; None for the answer.
    """
    for name, path in _exported(folder):
        same_request = _PICK.fullmatch(name) is None if pick is None else name == pick
        if same_request and path not in written and _outdated(path, current.get(name)):
            path.unlink(missing_ok=True)


def outdated_files(folder: Path, current: Mapping[str, Candidate]) -> list[Path]:
    """Return the files whose name now means another candidate than they hold.

    Args:
        folder: Of the files.
        current: Name → candidate; other names are passed over.
    """
    return [path for name, path in _exported(folder) if name in current and _outdated(path, current[name])]


def _exported(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (name, path) of what may be an exported file."""
    for path in sorted(folder.glob("launch-*")):
        named = _NAMED.fullmatch(path.name)
        if named is not None and path.is_file():
            yield named[1], path


def _outdated(path: Path, candidate: Candidate | None) -> bool:
    """Whether spectune wrote a file, and of another candidate than this."""
    head = "\n".join(path.read_text("utf-8", "replace").splitlines()[:HEAD_LINES])
    return MARK in head and (candidate is None or candidate_words(candidate) not in head)
