"""`spectune report`: the answer from records, without an engine."""

from __future__ import annotations

import os
from pathlib import Path

from spectune.answer import deliver, remembered_stop
from spectune.cli.answer_table import print_answer
from spectune.cli.exit_codes import ExitCode
from spectune.cli.terminal import PROGRESS
from spectune.errors import SpectuneError
from spectune.search import StudyFolder, TrialRecord
from spectune.space import SearchSpace


def show_report(study: str, *, output: Path | None, as_json: bool) -> int:
    """Write the report of a study and print its answer; returns the exit code.

    A study that may only be read has a report, too; its launch files are not renewed then.

    Raises:
        SpectuneError: The study cannot be read, or the page cannot be written where it is to go.
    """
    if output is not None and _is_stdout(output):
        raise SpectuneError(f"the answer is printed there, so the page cannot go to {output} too; name a file with -o")
    folder, space, records = open_study_records(study)
    answer = deliver(folder, space, records, remembered_stop(folder), report_file=output, archived=True)
    if answer.kept is not None:
        note = f"note: the launch files of study {folder.name} were not renewed: {answer.kept}"
        PROGRESS.print(note, markup=False, soft_wrap=True)
    print_answer(answer, as_json=as_json)
    return ExitCode.DONE


def _is_stdout(path: Path) -> bool:
    """Whether a path stands for what this program prints to."""
    try:
        return path == Path("-") or os.path.samestat(path.stat(), os.fstat(1))
    except (OSError, ValueError):
        return False


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
