"""`spectune report` and `spectune studies`: answers from records, without an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spectune import files
from spectune.answer import deliver, remembered_stop
from spectune.cli.answer_table import print_answer
from spectune.cli.terminal import OUT, print_json
from spectune.errors import SpectuneError
from spectune.search import StudyFolder, TrialRecord, all_studies
from spectune.space import SearchSpace

DONE = 0


def show_report(study: str, *, output: Path | None, as_json: bool) -> int:
    """Write the report of a study and print its answer; returns the exit code."""
    folder, space, records = open_study_records(study)
    answer = deliver(folder, space, records, remembered_stop(folder), report_file=output)
    print_answer(answer, as_json=as_json)
    return DONE


def list_studies(*, as_json: bool) -> int:
    """List the studies of the current folder; returns the exit code."""
    rows = [_row(folder) for folder in all_studies()]
    if as_json:
        print_json(rows)
        return DONE
    for row in rows:
        state = "finished" if row["finished"] else "not finished"
        mark = " (SIMULATED)" if row["simulated"] else ""
        OUT.print(
            f"{row['study']}{mark}  {row['launches']} launches, {state}: {row['sentence']}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    if not rows:
        OUT.print("no studies in ./studies; `spectune search quickstart` begins one")
    return DONE


def open_study_records(study: str) -> tuple[StudyFolder, SearchSpace, list[TrialRecord]]:
    """Return a study with its space and its finished launches.

    Raises:
        SpectuneError: There is no such study, it cannot be read, or nothing was finished.
    """
    folder = StudyFolder.named(study).require()
    records = folder.records()
    if not records:
        raise SpectuneError(f"the study {folder.name} has no finished launch yet")
    return folder, folder.space(), records


def _simulated(folder: StudyFolder) -> bool | None:
    """Return whether a model of a machine answered in a study; None where its space cannot be read."""
    try:
        return folder.space().engine.kind == "simulated"
    except SpectuneError:
        return None


def _row(folder: StudyFolder) -> dict[str, Any]:
    launches = len(list((folder.root / "trials").glob("[0-9]*/result.json")))
    try:
        summary = files.read_json(folder.summary_file)
    except SpectuneError:
        summary = {}
    if not isinstance(summary, dict):
        summary = {}
    return {
        "study": folder.name,
        "launches": launches,
        "simulated": _simulated(folder),
        "finished": bool(summary.get("finished")),
        "verdict": summary.get("verdict"),
        "sentence": summary.get("sentence") or "no answer yet",
    }
