"""The studies of a folder, a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from spectune import files
from spectune.cli.terminal import OUT, print_json
from spectune.errors import SpectuneError
from spectune.search import StudyFolder, all_studies

DONE = 0
VERDICTS = {
    "speculation": "speculate", "no_speculation": "do not speculate", "tie": "no difference", "undecided": "undecided",
}  # fmt: skip


def list_studies(*, as_json: bool) -> int:
    """List the studies of the current folder; returns the exit code."""
    rows = [_row(StudyFolder(path)) for path in all_studies()]
    if as_json:
        print_json(rows)
    elif rows:
        OUT.print(_table(rows), soft_wrap=not OUT.is_terminal)
    else:
        OUT.print("no studies in ./studies; `spectune search quickstart` begins one")
    return DONE


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("study", overflow="fold")
    table.add_column("engine", overflow="fold")
    table.add_column("launches", justify="right")
    table.add_column("verdict")
    table.add_column("recommended", overflow="fold")
    table.add_column("speedup", justify="right", no_wrap=True)
    table.add_column("last launch", no_wrap=True)
    for row in rows:
        speedup = row["speedup"]
        verdict = "no answer" if row["no_answer"] else VERDICTS.get(row["verdict"], "no answer yet")
        table.add_row(
            Text(row["study"]),
            Text(row["engine"]),
            str(row["launches"]),
            Text(verdict if row["finished"] else f"{verdict} (not finished)"),
            Text(row["recommended"] or ""),
            "" if speedup is None else f"{speedup[0]:.2f} ({speedup[1]:.2f}–{speedup[2]:.2f})",
            _when(row["last_launch"]),
        )
    return table


def _row(folder: StudyFolder) -> dict[str, Any]:
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
