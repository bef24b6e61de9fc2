"""The studies of a folder, a line each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from spectune import files
from spectune.cli.exit_codes import ExitCode
from spectune.cli.fitted_table import Column, fitted_table
from spectune.cli.terminal import OUT, print_json
from spectune.counts import count
from spectune.errors import SpectuneError
from spectune.search import StudyFolder, all_studies
from spectune.search.storage.studies import StudyHere

VERDICTS = {
    "speculation": "speculate", "no_speculation": "do not speculate", "tie": "no difference", "undecided": "undecided",
}  # fmt: skip
COLUMNS = (
    Column("study", least=24),
    Column("engine", leaves=1),
    Column("launches", justify="right"),
    Column("verdict"),
    Column("recommended", least=16, leaves=3),
    Column("best speculation", justify="right"),
    Column("last launch", leaves=2),
)
"""`spectune studies --help` says in which order they make room."""


def list_studies(*, as_json: bool) -> int:
    """List the studies of the current folder; returns the exit code."""
    rows = [_row(study) for study in all_studies()]
    if as_json:
        print_json(rows)
    elif rows:
        OUT.print(fitted_table(COLUMNS, [_cells(row) for row in rows], OUT.width))
    else:
        OUT.print("no studies in ./studies; `spectune search quickstart` begins one")
    return ExitCode.DONE


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a row's cells in the order of the columns."""
    workers = row["workers"]
    return (
        row["study"] if workers is None else f"{row['study']} ({count(workers, 'worker')})",
        row["engine"],
        str(row["launches"]),
        _verdict(row),
        row["recommended"] or "",
        _ratio(*row["speedup"] or (None, None, None)),
        _when(row["last_launch"]),
    )


def _ratio(judged: float | None, low: float | None, high: float | None) -> str:
    """Return a speedup with its interval, which few launches do not give."""
    interval = "" if low is None or high is None else f" ({low:.2f}–{high:.2f})"
    return "" if judged is None else f"{judged:.2f}{interval}"


def _verdict(row: Mapping[str, Any]) -> str:
    known = "no answer" if row["no_answer"] else VERDICTS.get(row["verdict"])
    if known is None:
        return "no answer yet"
    return known if row["finished"] else f"{known} so far"


def _row(study: StudyHere) -> dict[str, Any]:
    """Return what is known of a study: what the copy of it knows that is furthest."""
    found = [_copy(StudyFolder(path)) for path in study.folders]
    furthest = max(found, key=lambda copy: (copy["finished"], copy["launches"]))
    return {**furthest, "workers": study.workers, "folders": [str(path) for path in study.folders]}


def _copy(folder: StudyFolder) -> dict[str, Any]:
    records = sorted((folder.root / "trials").glob("[0-9]*/result.json"))
    summary = _object(folder.summary_file)
    recommended, speedup = summary.get("recommended"), summary.get("speedup")
    return {
        "study": folder.name,
        "engine": summary.get("engine") or _kind(folder),
        "launches": len(records),
        "simulated": _kind(folder) == "simulated",
        "finished": bool(summary.get("finished")),
        "verdict": summary.get("verdict"),
        "no_answer": summary.get("no_answer"),
        "recommended": recommended.get("label") if isinstance(recommended, dict) else None,
        "speedup": speedup.get("judged") if isinstance(speedup, dict) else None,
        "last_launch": _object(records[-1]).get("started_at") if records else None,
        "sentence": summary.get("sentence") or "no answer yet",
    }


def _object(file: Path) -> Mapping[str, Any]:
    """Return what a file of a study holds; a list of studies is no place to complain of a damaged one."""
    try:
        found = files.read_json(file)
    except SpectuneError:
        return {}
    return found if isinstance(found, dict) else {}


def _when(moment: object) -> str:
    """Return a moment as the clock on the wall shows it."""
    try:
        return f"{datetime.fromisoformat(str(moment)).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return ""


def _kind(folder: StudyFolder) -> str:
    """Return which kind of engine answered; a space that cannot be read does not say."""
    try:
        return folder.space().engine.kind
    except SpectuneError:
        return "unknown"
