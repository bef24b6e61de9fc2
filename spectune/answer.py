"""From a study's records to what a person takes away: summary, launch files, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spectune import files
from spectune.errors import SpectuneError
from spectune.export import (
    DEFAULT_FORMATS,
    ExportedFiles,
    Format,
    Origin,
    adaptive_table,
    export_candidates,
    outdated_files,
)
from spectune.export.write import Table
from spectune.report import write_report
from spectune.search import (
    Stop,
    StudyFolder,
    Summary,
    TrialRecord,
    WarmStart,
    picked,
    shared_study,
    summarise,
    weigh,
)
from spectune.search.answer.picks import Need
from spectune.search.answer.sentence import UNCONFIRMED
from spectune.search.answer.summary_fields import CandidateLevel
from spectune.search.storage.records import Status
from spectune.space import SearchSpace

REPORTS = Path("reports")


@dataclass(frozen=True)
class Answer:
    """Everything a study gives its user.

    Attributes:
        summary: The content of `summary.json`.
        exported: Launch files, the recommended one first.
        report: The HTML report.
        outdated: Files of earlier picks that would be of another candidate now.
        kept: Why the study's folder was left as it is, its launch files not renewed; None where they were.
    """

    summary: Summary
    exported: Sequence[ExportedFiles]
    report: Path
    outdated: Sequence[Path]
    kept: str | None = None

    @property
    def recommended_file(self) -> Path | None:
        """The launch file of the recommendation."""
        recommended = self.summary.recommended
        if recommended is None:
            return None
        found = (e.shell for e in self.exported if e.candidate_id == recommended.candidate_id)
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
    archived: bool = False,
) -> Answer:
    """Write `summary.json`, the launch files and the report of a study.

    Args:
        folder: The study.
        space: Its search space.
        records: Its launches.
        stop: Why it ended; None when it has not.
        report_file: Where the report goes.
        archived: Whether its folder may be one that cannot be written to.

    Raises:
        SpectuneError: When a file cannot be read or written; the report is written even so.
    """
    summary = summarise(
        records, space, stop,
        name=folder.name, engine=folder.engine_title, warm_start=WarmStart.of(folder), shared=shared_study(folder.root),
    )  # fmt: skip
    exported: Sequence[ExportedFiles] = ()
    failed: SpectuneError | None = None
    try:
        files.write_json(folder.summary_file, summary.to_json())
        exported = export_answer(folder, space, records, summary)
    except SpectuneError as error:
        failed = error
    path = report_file or REPORTS / f"{folder.name}.html"
    report = write_report(summary, records, folder.environment(), space, path)
    if failed is not None and not archived:
        raise failed
    kept = None if failed is None else str(failed)
    return Answer(summary, exported, report, outdated_picks(folder, space, records), kept)


def export_answer(
    folder: StudyFolder,
    space: SearchSpace,
    records: Sequence[TrialRecord],
    summary: Summary,
    *,
    pick: str | None = None,
    formats: Sequence[Format] = DEFAULT_FORMATS,
) -> list[ExportedFiles]:
    """Write launch files for the recommendation and every other Pareto-optimal candidate, or for one picked launch.

    Args:
        folder: The study.
        space: Its search space.
        records: Its launches.
        summary: What they say.
        pick: `latency`, `throughput`, `balanced` or the number of a launch; None for all that is worth running.
        formats: What to write.

    Raises:
        SpectuneError: There is no such launch, or a file cannot be written.
    """
    by_trial = {record.trial: record for record in records}
    recommended = [] if summary.recommended is None else [summary.recommended.trial]
    worth = [by_trial[trial] for trial in dict.fromkeys([*recommended, *summary.pareto])]
    origin = launch_origin(folder, space, summary)
    chosen, name = worth, None
    if pick is not None:
        found = picked(pick, records, weigh(records, space), space)
        doubts = {} if found.confirmed else {found.record.candidate.candidate_id: UNCONFIRMED}
        origin = replace(origin, notes=(found.why,), doubts=doubts)
        chosen, name = [found.record], found.name
    tables = _tables(chosen, space, records, origin) if Format.ADAPTIVE in formats else {}
    return export_candidates(chosen, folder.exports, origin, formats=formats, tables=tables, pick=name)


def outdated_picks(folder: StudyFolder, space: SearchSpace, records: Sequence[TrialRecord]) -> list[Path]:
    """Return the files of picks for a need that another candidate meets by now."""
    if not any(any(folder.exports.glob(f"launch-{need}.*")) for need in Need):
        return []
    evidence = weigh(records, space)
    try:
        current = {need.value: picked(need, records, evidence, space).record.candidate for need in Need}
    except SpectuneError:  # nothing to pick, as after a jump of the machine
        return []
    return outdated_files(folder.exports, current)


def launch_origin(folder: StudyFolder, space: SearchSpace, summary: Summary) -> Origin:
    """Return where the launch files of a study come from."""
    means: dict[str, list[CandidateLevel]] = {}
    for one in summary.candidates:
        means.setdefault(one.candidate_id, []).append(one)
    drifted = any(place.drift is not None and place.drift.corrected for place in summary.places)
    what = [*["the machine's drift"] * drifted, *["what places differ by"] * (len(summary.places) > 1)]
    doubts = {name: UNCONFIRMED for name, levels in means.items() if not levels[0].confirmed}
    return Origin(
        folder.name, summary.engine, simulated=summary.simulated, doubts=doubts, means=means,
        gpus=space.engine.gpus, corrected=" and ".join(what),
    )  # fmt: skip


def _tables(
    chosen: Sequence[TrialRecord], space: SearchSpace, records: Sequence[TrialRecord], origin: Origin
) -> dict[str, Table | SpectuneError]:
    """Return the table of adaptive speculation for each of the launches that speculates, or why it has none."""
    if not chosen:
        return {}
    speculative = [record.candidate for record in chosen if record.candidate.speculative]
    if not speculative:
        who = (
            f"launch {chosen[0].trial} does not speculate" if len(chosen) == 1 else "none of these launches speculates"
        )
        others = [record.trial for record in records if record.status is Status.OK and record.candidate.speculative]
        way_out = f"name one that does with --pick TRIAL ({', '.join(map(str, others))})"
        why = f"{who}; {way_out if others else 'no launch of this study that ran as asked does'}"
        return {chosen[0].candidate.candidate_id: SpectuneError(why)}
    evidence, tables = weigh(records, space), dict[str, Table | SpectuneError]()
    for candidate in speculative:
        try:
            tables[candidate.candidate_id] = adaptive_table(candidate, evidence, space, origin.version)
        except SpectuneError as error:
            tables[candidate.candidate_id] = error
    return tables
