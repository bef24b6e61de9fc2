"""From a study's records to what a person takes away: summary, launch files, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectune import files
from spectune.errors import SpectuneError
from spectune.export import ExportedFiles, export_candidates
from spectune.report import write_report
from spectune.search import Stop, StudyFolder, Summary, TrialRecord, summarise
from spectune.space import SearchSpace

REPORTS = Path("reports")


@dataclass(frozen=True)
class Answer:
    """Everything a study gives its user.

    Attributes:
        summary: The content of `summary.json`.
        exported: Launch files, the recommended one first.
        report: The HTML report.
    """

    summary: Summary
    exported: Sequence[ExportedFiles]
    report: Path

    @property
    def recommended_file(self) -> Path | None:
        """The launch file of the recommendation."""
        recommended = self.summary["recommended"]
        if recommended is None:
            return None
        found = (e.shell for e in self.exported if e.candidate_id == recommended["candidate_id"])
        return next(found, None)


def remembered_stop(folder: StudyFolder) -> Stop | None:
    """Return why the study ended, None when it has not."""
    try:
        stop = files.read_json(folder.summary_file)["stop"]
        return Stop(str(stop["reason"]), stop["figure"])
    except (SpectuneError, KeyError, TypeError):  # not finished, or damaged: the summary is derived, and written anew
        return None


def deliver(
    folder: StudyFolder,
    space: SearchSpace,
    records: Sequence[TrialRecord],
    stop: Stop | None,
    *,
    report_file: Path | None = None,
) -> Answer:
    """Write `summary.json`, the launch files and the report of a study.

    Raises:
        SpectuneError: When a file cannot be read or written.
    """
    environment = folder.environment()
    summary = summarise(
        records, space, stop, name=folder.name, engine=str(environment.get("engine", "an unknown engine"))
    )
    files.write_json(folder.summary_file, summary)
    path = report_file or REPORTS / f"{folder.name}.html"
    report = write_report(summary, records, environment, space.text, path)
    return Answer(summary, export_answer(folder, records, summary), report)


def export_answer(folder: StudyFolder, records: Sequence[TrialRecord], summary: Summary) -> list[ExportedFiles]:
    """Write a launch file for the recommendation and every other Pareto-optimal candidate."""
    recommended = [] if summary["recommended"] is None else [summary["recommended"]["trial"]]
    by_trial = {record.trial: record for record in records}
    picks = [by_trial[trial] for trial in dict.fromkeys([*recommended, *summary["pareto"]])]
    means: dict[str, list[Mapping[str, Any]]] = {}
    for row in summary["candidates"]:
        if row["class"] == "all":
            means.setdefault(row["candidate_id"], []).append(row)
    return export_candidates(
        picks, folder.exports, study=folder.name, engine=summary["engine"], simulated=summary["simulated"],
        means=means, replace=True,
    )  # fmt: skip
