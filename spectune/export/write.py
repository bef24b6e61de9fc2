"""Writing the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectune.errors import SpectuneError
from spectune.export.config_file import config_file
from spectune.export.file_names import candidate_names
from spectune.export.header import MARK, Origin
from spectune.export.launch import Launch
from spectune.export.shell import shell_script
from spectune.files import write_whole
from spectune.search.records import Status, TrialRecord


@dataclass(frozen=True)
class ExportedFiles:
    """The files of one exported launch.

    Attributes:
        trial: The launch they were taken from.
        candidate_id: Its candidate.
        name: What stands between `launch-` and the ending.
        shell: The bash script.
        config: The file for SGLang's `--config`.
    """

    trial: int
    candidate_id: str
    name: str
    shell: Path
    config: Path


def export_candidates(
    picks: Sequence[TrialRecord],
    folder: Path,
    *,
    study: str,
    engine: str,
    simulated: bool,
    notes: Sequence[str] = (),
    means: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    replace: bool = False,
) -> list[ExportedFiles]:
    """Write `launch-<name>.sh` and `launch-<name>.yaml` for every candidate among the picks.

    Args:
        picks: Launches to export, best first; of several launches of one candidate the first counts.
        folder: Where the files go; made when missing.
        study: Name of the study.
        engine: Name and version of the engine, as shown to people.
        simulated: Whether the figures come from a model of a machine.
        notes: More comment lines for the top of every file.
        means: Candidate id → the study's figures per level, told instead of those of the exported launch alone.
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
    origin = Origin(study, engine, simulated, notes, means or {})
    names = candidate_names([record.candidate for record in records])
    written = [_write(record, name, folder, origin) for record, name in zip(records, names, strict=True)]
    if replace:
        _remove_earlier(folder, {path for files in written for path in (files.shell, files.config)})
    return written


def _remove_earlier(folder: Path, kept: Collection[Path]) -> None:
    for path in (*folder.glob("launch-*.sh"), *folder.glob("launch-*.yaml")):
        if path not in kept and any(
            line.endswith(MARK) for line in path.read_text("utf-8", "replace").splitlines()[:2]
        ):
            path.unlink(missing_ok=True)


def _write(record: TrialRecord, name: str, folder: Path, origin: Origin) -> ExportedFiles:
    launch = Launch.of(record.command)
    shell, config = folder / f"launch-{name}.sh", folder / f"launch-{name}.yaml"
    write_whole(shell, shell_script(record, launch, origin), executable=True)
    write_whole(config, config_file(record, launch, origin, file_name=config.name))
    return ExportedFiles(record.trial, record.candidate.candidate_id, name, shell, config)
