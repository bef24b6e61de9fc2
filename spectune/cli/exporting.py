"""`spectune export`: launch files from a study's records, without an engine."""

from __future__ import annotations

from typing import Any

from spectune.answer import export_answer, outdated_picks, remembered_stop
from spectune.cli.answer_table import pick_outdated
from spectune.cli.answering import open_study_records
from spectune.cli.exit_codes import ExitCode
from spectune.cli.terminal import OUT, PROGRESS, print_json
from spectune.errors import SpectuneError
from spectune.export import ExportedFiles, parse_formats
from spectune.search import summarise
from spectune.search.answer.picks import check_pick


def write_launch_files(study: str, *, pick: str | None, formats: str, as_json: bool) -> int:
    """Write the launch files of a study; returns the exit code.

    What a launch cannot be written in is said, and everything else written.

    Raises:
        SpectuneError: The study or the launch cannot be exported, or nothing could be written at all.
    """
    chosen = parse_formats(formats)
    if pick is not None:
        check_pick(pick)
    folder, space, records = open_study_records(study)
    summary = summarise(records, space, remembered_stop(folder), name=folder.name, engine=folder.engine_title)
    exported = export_answer(folder, space, records, summary, pick=pick, formats=chosen)
    if not exported:
        raise SpectuneError(f"the study {folder.name} has nothing to export: {summary.no_answer}")
    refused = [f"{form}: {why}" for form, why in dict.fromkeys(x for e in exported for x in e.refused.items())]
    if not any(entry.files for entry in exported):
        raise SpectuneError(f"nothing was written; {'; '.join(refused)}")
    for entry in exported:
        for note in entry.notes:
            PROGRESS.print(f"launch {entry.trial}: {note}", markup=False, soft_wrap=True)
    if as_json:
        print_json([_json(entry) for entry in exported])
    else:
        for path in (path for entry in exported for path in entry.files.values()):
            OUT.print(str(path), markup=False, soft_wrap=True)
    for file in outdated_picks(folder, space, records):
        PROGRESS.print(pick_outdated(file), markup=False, soft_wrap=True)
    for line in refused:
        PROGRESS.print(f"not written: {line}", markup=False, soft_wrap=True)
    return ExitCode.BAD_INPUT if refused else ExitCode.DONE


def _json(entry: ExportedFiles) -> dict[str, Any]:
    return {
        "trial": entry.trial,
        **{form.key: str(path) for form, path in entry.files.items()},
        "not_written": {form.key: why for form, why in entry.refused.items()},
        "notes": list(entry.notes),
    }
