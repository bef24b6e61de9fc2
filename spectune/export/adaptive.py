"""SGLang's table for `--speculative-adaptive-config`, from the steps measured to be best at each load."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import orjson

from spectune.export.header import Origin, header
from spectune.export.launch import Launch
from spectune.search.evidence.steps_by_load import StepsAtLoad
from spectune.search.storage.records import TrialRecord
from spectune.space import Candidate

CAVEATS = (
    (
        "0 steps were measured without speculation under this launch's other settings, its graphs too: an engine that "
        "switches to 0 keeps them; a server that switches while it runs was not measured"
    ),
    "SGLang takes the entry of the largest size that is not above its batch; between measured loads that is a guess",
)


def adaptive_file(
    record: TrialRecord, launch: Launch, origin: Origin, table: Sequence[StepsAtLoad], *, name: str, shell: str
) -> str:
    """Return the table as JSON, and beside it, under a key SGLang passes over, what it rests on.

    Args:
        record: The launch the table is for.
        launch: Its command.
        origin: Where it comes from.
        table: By load.
        name: Of the file.
        shell: Of the script that starts the launch.
    """
    start = _start(record.candidate, table)
    told = [line.removeprefix("# ") for line in header(record, launch, origin)]
    told += [*(entry.words for entry in table), *table_doubts(table), *CAVEATS]
    told.append(f"start, in this folder: {shlex.join(['bash', shell, *adaptive_words(name), *start])}")
    slots = {str(entry.concurrency): {"candidate_steps": [entry.best]} for entry in table}
    return orjson.dumps({"comment": told, **slots}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def table_doubts(table: Sequence[StepsAtLoad]) -> list[str]:
    """Return what speaks against a table's entries: none confirmed them, or another launch is faster at that load."""
    found = [f"{entry.best} at c{entry.concurrency}" for entry in table if not entry.confirmed]
    told = [f"steps NOT CONFIRMED: {', '.join(found)}; their figures are of the search alone"] if found else []
    told += [
        f"at c{entry.concurrency} a launch of its own without speculation is faster, {entry.tuned.speed:.1f} tok/s "
        f"instead of {entry.speeds[entry.best]:.1f} ({entry.tuned.label}): the table is the best with this "
        "launch's other settings, which the engine keeps with 0 steps too"
        for entry in table
        if entry.tuned is not None and entry.tuned.faster
    ]
    return told


def adaptive_words(file_name: str) -> list[str]:
    """Return the arguments that make a launch use a table."""
    return ["--speculative-adaptive", "--speculative-adaptive-config", file_name]


def _start(candidate: Candidate, table: Sequence[StepsAtLoad]) -> list[str]:
    """Return the arguments for steps that are in the table, as SGLang asks for; nothing where the launch's own are."""
    chosen = [entry.best for entry in table]
    if candidate.num_steps in chosen:
        return []
    steps = max(chosen)
    return ["--speculative-num-steps", str(steps), "--speculative-num-draft-tokens", str(steps + 1)]
