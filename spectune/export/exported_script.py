"""An exported script read back: which launch of which study it is, and whether it still is that launch."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from spectune.errors import InputProblems, Problem, SpectuneError
from spectune.export.header import MARK, Origin
from spectune.export.launch import Launch
from spectune.export.shell import shell_script
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.records import TrialRecord

_SOURCE = re.compile(r"# study (?P<study>.+), trial (?P<trial>\d{1,9}), \S+T\S+, ")
HEADER_LINES = 12


@dataclass(frozen=True)
class ExportedScript:
    """A script that `export` wrote.

    Attributes:
        path: The file.
        text: Its content.
        study: Name of the study it names.
        trial: Number of the launch it names.
    """

    path: Path
    text: str
    study: str
    trial: int

    def folder(self) -> StudyFolder:
        """Return the study: the one the file lies in, otherwise the one of that name in the current folder.

        Raises:
            SpectuneError: Neither is there.
        """
        around = StudyFolder(self.path.resolve().parent.parent)
        if around.exists() and around.name == self.study:
            return around
        try:
            return StudyFolder.named(self.study).require()
        except SpectuneError as error:
            raise SpectuneError(
                f"{self.path} comes from the study {self.study}, which is not here: {error}; run this where it is"
            ) from None

    def require_unedited(self, record: TrialRecord) -> None:
        """Make sure that the script starts what its launch started; the comments at its top do not matter.

        Raises:
            InputProblems: With the first line that differs.
        """
        _, wanted = _code(shell_script(record, Launch.of(record.command), Origin(self.study, "", simulated=False)))
        first, found = _code(self.text)
        for number, (got, asked) in enumerate(zip_longest(found, wanted), start=first):
            if got != asked:
                message = (
                    f"this file was edited: it has {_quoted(got)} where launch {self.trial} was exported with "
                    f"{_quoted(asked)}, so the figures on record are not its own; "
                    f"`spectune export {shlex.quote(self.study)} --pick {self.trial}` writes it again"
                )
                raise InputProblems([Problem(message, self.path, min(number, first + len(found)))])


def read_exported(path: Path) -> ExportedScript:
    """Read a script that `export` wrote.

    Raises:
        SpectuneError: It cannot be read, or is none.
    """
    if path.exists() and not path.is_file():  # a pipe may never begin, a device may never end
        raise SpectuneError(f"cannot read {path}: it is a folder, a device or a pipe; name a launch-NAME.sh")
    try:
        text = path.read_bytes().decode("utf-8")  # line ends as bash reads them
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SpectuneError(
            f"cannot read {path}: {reason}; check takes a script that `spectune export STUDY` wrote"
        ) from None
    head = text.splitlines()[:HEADER_LINES]
    if not any(MARK in line for line in head):
        raise SpectuneError(
            f"{path} is not a launch file of spectune's: its first lines do not say '{MARK}'; "
            "`spectune export STUDY` writes them"
        )
    if not head[0].startswith("#!"):
        raise SpectuneError(f"{path} was exported for another program; check takes the script, launch-NAME.sh")
    source = next(filter(None, map(_SOURCE.match, head)), None)
    if source is None:
        raise SpectuneError(f"{path} no longer names the study and launch it comes from (a line '# study …, trial …')")
    return ExportedScript(path, text, source["study"], int(source["trial"]))


def launch_changes(then: Launch, now: Launch) -> list[str]:
    """Return what a launch is given now that differs from then, a line each."""
    was, new = _parts(then), _parts(now)
    return [
        f"{name}: {was.get(name, 'absent')} → {new.get(name, 'absent')}"
        for name in dict.fromkeys([*was, *new])
        if was.get(name) != new.get(name)
    ]


def _parts(launch: Launch) -> dict[str, str]:
    return {
        "program": " ".join(launch.program),
        **{f"--{option.name}": " ".join(option.values) or "given" for option in launch.options},
        **dict(launch.env),
        **dict.fromkeys(launch.unset, "unset"),
    }


def _code(text: str) -> tuple[int, list[str]]:
    """Return the number of the first line that does something, and all lines from there on."""
    lines = text.split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    return first + 1, lines[first:]


def _quoted(line: str | None) -> str:
    return "nothing more" if line is None else repr(line.strip(" "))
