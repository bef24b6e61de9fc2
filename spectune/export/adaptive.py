"""SGLang's table for `--speculative-adaptive-config`, from the steps measured to be best at each load."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import orjson

from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.rules.algorithm import not_adaptive
from spectune.engines.sglang.rules.state import State
from spectune.engines.sglang.versions.history import older_than
from spectune.errors import SpectuneError
from spectune.export.header import Origin, header
from spectune.export.launch import Launch
from spectune.search.evidence.outcome import Evidence
from spectune.search.evidence.steps_by_load import StepsAtLoad, steps_by_load
from spectune.search.storage.records import TrialRecord
from spectune.space import Candidate, SearchSpace

SINCE = "0.5.14"
"""First version whose table is by batch size and takes 0 steps (0.5.12's is flat, 0.5.13's begins at 1)."""
CAVEATS = (
    (
        "0 steps were measured without speculation under this launch's other settings, its graphs too: an engine that "
        "switches to 0 keeps them; a server that switches while it runs was not measured"
    ),
    "SGLang takes the entry of the largest size that is not above its batch; between measured loads that is a guess",
)


def adaptive_table(
    candidate: Candidate, evidence: Evidence, space: SearchSpace, version: str | None
) -> tuple[StepsAtLoad, ...]:
    """Return the steps that are best at each load, if SGLang can switch between them.

    Raises:
        SpectuneError: SGLang cannot, or the study's launches do not tell.
    """
    if version is None or older_than(version, SINCE):
        raise SpectuneError(
            f"tables of steps by batch size with 0 in them are read by SGLang since {SINCE}, but this study ran "
            f"{version or 'an unknown version'}"
        )
    launch = {**space.engine.args, **candidate.arguments}
    reason = not_adaptive(State(launch, model=Model.unknown()))
    if reason is not None:
        raise SpectuneError(f"SGLang's adaptive speculation does not run with {space.label(candidate)}: {reason}")
    return steps_by_load(candidate, evidence, space)


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
    """Return what speaks against believing a table's entries; empty where each was confirmed."""
    found = [f"{entry.best} at c{entry.concurrency}" for entry in table if not entry.confirmed]
    if not found:
        return []
    return [f"steps NOT CONFIRMED: {', '.join(found)}; their figures are of the search alone"]


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
