"""`spectune export`: launch files from a study's records, without an engine."""

from __future__ import annotations

from spectune.answer import export_answer, remembered_stop
from spectune.cli.answering import open_study_records
from spectune.cli.terminal import OUT, print_json
from spectune.errors import SpectuneError
from spectune.export import parse_formats
from spectune.search import summarise

DONE = 0


def write_launch_files(study: str, *, pick: str | None, formats: str, as_json: bool) -> int:
    """Write the launch files of a study; returns the exit code."""
    chosen = parse_formats(formats)
    folder, space, records = open_study_records(study)
    engine = str(folder.environment().get("engine", "an unknown engine"))
    summary = summarise(records, space, remembered_stop(folder), name=folder.name, engine=engine)
    exported = export_answer(folder, space, records, summary, pick=pick, formats=chosen)
    if not exported:
        raise SpectuneError(f"the study {folder.name} has nothing to export: no launch was measured as asked for")
    if as_json:
        print_json([{"trial": e.trial, **{form.key: str(path) for form, path in e.files.items()}} for e in exported])
        return DONE
    for entry in exported:
        for path in entry.files.values():
            OUT.print(str(path), markup=False, soft_wrap=True)
    return DONE
