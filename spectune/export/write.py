"""Writing the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spectune.errors import SpectuneError
from spectune.export.adaptive import adaptive_file, table_doubts
from spectune.export.compose import compose_file
from spectune.export.config_file import config_file
from spectune.export.earlier import remove_outdated
from spectune.export.file_names import candidate_names, lasting_name
from spectune.export.formats import DEFAULT_FORMATS, Format
from spectune.export.header import Origin
from spectune.export.launch import Launch
from spectune.export.shell import shell_script
from spectune.files import write_whole
from spectune.search.evidence.steps_by_load import StepsAtLoad
from spectune.search.storage.records import Status, TrialRecord

Table = Sequence[StepsAtLoad]


@dataclass(frozen=True)
class ExportedFiles:
    """The files of one exported launch.

    Attributes:
        trial: The launch they were taken from.
        candidate_id: Its candidate.
        name: What stands between `launch-` and the ending.
        files: Those that were written, by format.
        refused: Why the others that were asked for could not be, by format.
        notes: What is to be known of the launch beside its figures.
    """

    trial: int
    candidate_id: str
    name: str
    files: Mapping[Format, Path]
    refused: Mapping[Format, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def shell(self) -> Path:
        """The bash script, where it was asked for."""
        return self.files[Format.SHELL]

    @property
    def config(self) -> Path:
        """The file for SGLang's `--config`, where it was asked for."""
        return self.files[Format.CONFIG]


def export_candidates(
    launches: Sequence[TrialRecord],
    folder: Path,
    origin: Origin,
    *,
    formats: Sequence[Format] = DEFAULT_FORMATS,
    tables: Mapping[str, Table | SpectuneError] | None = None,
    pick: str | None = None,
) -> list[ExportedFiles]:
    """Write `launch-<name>.<ending>` in every format for every candidate among the launches.

    What the same request left earlier of other candidates is removed (`earlier`).

    Args:
        launches: To export, best first; of several launches of one candidate the first counts.
        folder: Where the files go; made when missing.
        origin: Where they come from.
        formats: What to write; the table of adaptive speculation only where there is one.
        tables: Candidate id → its table of steps by load, or why it has none.
        pick: What the only launch was picked as, which its files are then named by.

    Returns:
        The files, in the order of the launches; a format that a launch cannot be written in keeps no other from being
        written.

    Raises:
        SpectuneError: When a launch did not run as asked, or a file cannot be written.
    """
    for record in launches:
        if record.status is not Status.OK:
            raise SpectuneError(
                f"only launches that ran as asked are exported, but trial {record.trial} is {record.status.value}"
            )
    first = {record.candidate.candidate_id: record for record in reversed(launches)}
    records = [record for record in launches if first[record.candidate.candidate_id] is record]
    names = candidate_names([record.candidate for record in records]) if pick is None else [pick]
    written = [
        _write(record, name, folder, origin, formats, (tables or {}).get(record.candidate.candidate_id))
        for record, name in zip(records, names, strict=True)
    ]
    current = {name: record.candidate for record, name in zip(records, names, strict=True)}
    remove_outdated(folder, current, {path for one in written for path in one.files.values()}, pick)
    return written


def _write(
    record: TrialRecord,
    name: str,
    folder: Path,
    origin: Origin,
    formats: Sequence[Format],
    table: Table | SpectuneError | None,
) -> ExportedFiles:
    launch = Launch.of(record.command)
    chosen = [form for form in formats if form is not Format.ADAPTIVE or table is not None]
    if Format.ADAPTIVE in chosen and not isinstance(table, SpectuneError):
        chosen.append(Format.SHELL)  # the table is passed to it
    paths = {form: folder / f"launch-{name}.{form.ending}" for form in Format}
    script = paths[Format.SHELL] if Format.SHELL in chosen else None
    kept = origin.with_check(script and lasting_name(script))
    texts: dict[Format, str] = {}
    refused: dict[Format, str] = {}
    for form in dict.fromkeys(chosen):
        try:
            texts[form] = _text(form, record, launch, kept, paths, table)
        except SpectuneError as error:
            refused[form] = str(error)
    for form, text in texts.items():
        write_whole(paths[form], text, executable=form is Format.SHELL)
    files = {form: paths[form] for form in texts}
    notes = origin.with_check(script).notes_on(record.candidate) if files else []
    if Format.ADAPTIVE in files and not isinstance(table, SpectuneError):
        notes += table_doubts(table or ())
    return ExportedFiles(record.trial, record.candidate.candidate_id, name, files, refused, notes)


def _text(
    form: Format,
    record: TrialRecord,
    launch: Launch,
    origin: Origin,
    paths: Mapping[Format, Path],
    table: Table | SpectuneError | None,
) -> str:
    match form:
        case Format.SHELL:
            return shell_script(record, launch, origin)
        case Format.CONFIG:
            return config_file(record, launch, origin, file_name=paths[form].name)
        case Format.COMPOSE:
            return compose_file(record, launch, origin, file_name=paths[form].name)
        case Format.ADAPTIVE:
            if isinstance(table, SpectuneError):
                raise table
            shell = paths[Format.SHELL].name
            return adaptive_file(record, launch, origin, table or (), name=paths[form].name, shell=shell)
