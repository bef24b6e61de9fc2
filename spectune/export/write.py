"""Writing the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spectune.errors import SpectuneError
from spectune.export.adaptive import adaptive_file
from spectune.export.compose import compose_file
from spectune.export.config_file import config_file
from spectune.export.file_names import candidate_names
from spectune.export.formats import DEFAULT_FORMATS, Format
from spectune.export.header import MARK, Origin
from spectune.export.launch import Launch
from spectune.export.shell import shell_script
from spectune.files import write_whole
from spectune.search.records import Status, TrialRecord
from spectune.search.steps_by_load import StepsAtLoad
from spectune.space import Candidate

Table = Sequence[StepsAtLoad]


@dataclass(frozen=True)
class ExportedFiles:
    """The files of one exported launch.

    Attributes:
        trial: The launch they were taken from.
        candidate_id: Its candidate.
        name: What stands between `launch-` and the ending.
        files: Those that were written, by format.
    """

    trial: int
    candidate_id: str
    name: str
    files: Mapping[Format, Path]

    @property
    def shell(self) -> Path:
        """The bash script, where it was asked for."""
        return self.files[Format.SHELL]

    @property
    def config(self) -> Path:
        """The file for SGLang's `--config`, where it was asked for."""
        return self.files[Format.CONFIG]


def export_candidates(
    picks: Sequence[TrialRecord],
    folder: Path,
    origin: Origin,
    *,
    formats: Sequence[Format] = DEFAULT_FORMATS,
    tables: Mapping[str, Table] | None = None,
    beside: Sequence[Candidate] = (),
    replace: bool = False,
) -> list[ExportedFiles]:
    """Write `launch-<name>.<ending>` in every format for every candidate among the picks.

    Args:
        picks: Launches to export, best first; of several launches of one candidate the first counts.
        folder: Where the files go; made when missing.
        origin: Where they come from.
        formats: What to write; the table of adaptive speculation only where there is one.
        tables: Candidate id → its table of steps by load.
        beside: Candidates whose files may lie in the folder: no other candidate gets their names.
        replace: Remove what earlier exports left in the folder; files that spectune did not write stay.

    Returns:
        The files, in the order of the picks.

    Raises:
        SpectuneError: When a pick did not run as asked, or a file cannot be written.
    """
    for record in picks:
        if record.status is not Status.OK:
            raise SpectuneError(
                f"only launches that ran as asked are exported, but trial {record.trial} is {record.status.value}"
            )
    first = {record.candidate.candidate_id: record for record in reversed(picks)}
    records = [record for record in picks if first[record.candidate.candidate_id] is record]
    others = [one for one in dict.fromkeys(beside) if one.candidate_id not in first]
    names = candidate_names([*(record.candidate for record in records), *others])
    written = [
        _write(record, name, folder, origin, formats, (tables or {}).get(record.candidate.candidate_id))
        for record, name in zip(records, names, strict=False)
    ]
    if replace:
        _remove_earlier(folder, {path for exported in written for path in exported.files.values()})
    return written


def _remove_earlier(folder: Path, kept: Collection[Path]) -> None:
    for path in filter(Path.is_file, folder.glob("launch-*")):
        if path not in kept and any(MARK in line for line in path.read_text("utf-8", "replace").splitlines()[:3]):
            path.unlink(missing_ok=True)


def _write(
    record: TrialRecord, name: str, folder: Path, origin: Origin, formats: Sequence[Format], table: Table | None
) -> ExportedFiles:
    launch = Launch.of(record.command)
    files = {form: folder / f"launch-{name}.{form.ending}" for form in formats}
    if table is None:
        files.pop(Format.ADAPTIVE, None)
    texts = {form: _text(form, record, launch, origin, files, table or ()) for form in files}  # all, or none
    for form, text in texts.items():
        write_whole(files[form], text, executable=form is Format.SHELL)
    return ExportedFiles(record.trial, record.candidate.candidate_id, name, files)


def _text(
    form: Format, record: TrialRecord, launch: Launch, origin: Origin, files: Mapping[Format, Path], table: Table
) -> str:
    match form:
        case Format.SHELL:
            return shell_script(record, launch, origin)
        case Format.CONFIG:
            return config_file(record, launch, origin, file_name=files[form].name)
        case Format.COMPOSE:
            return compose_file(record, launch, origin, file_name=files[form].name)
        case Format.ADAPTIVE:
            shell = files[Format.SHELL].name
            return adaptive_file(record, launch, origin, table, name=files[form].name, shell=shell)
