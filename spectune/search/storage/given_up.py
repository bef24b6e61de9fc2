"""A launch that nobody who makes it survives: after a few of them it has failed, and the study goes on without it."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from spectune.engines.address import DEFAULT_PORT, Address
from spectune.engines.protocol import Engine
from spectune.search.storage.records import Seconds, Status, TrialRecord
from spectune.search.storage.steps import Step
from spectune.serving import Failure, FailureClass
from spectune.space import SearchSpace
from spectune.withheld import secret_values, secret_variables

MOST_LOST = 3  # workers; a machine may fail once, or a queue end a job, through no fault of the launch


def given_up(
    step: Step, lost: int, space: SearchSpace, engine: Engine, *, launch_index: int, prompts_end: int
) -> TrialRecord | None:
    """Return the record of a launch that is not made once more; None where it is to be made.

    Args:
        step: The launch.
        lost: How many workers were lost over it.
        space: The search space.
        engine: What would be launched.
        launch_index: How many launches the study has made before.
        prompts_end: Prompts it has used.
    """
    if lost < MOST_LOST:
        return None
    address = Address.for_launch(space.engine.args)
    port = space.engine.args.get("port")
    command = engine.command(
        step.candidate, host=address.host, port=port if isinstance(port, int) else DEFAULT_PORT, api_key=address.api_key
    )
    words = (
        f"each of the {lost} workers that made this launch was lost over it, without a word: look at what the kernel "
        "or the cluster says of their end (out of memory, time limit), and at the engine's log in their folders"
    )
    record = TrialRecord(
        trial=step.trial, role=step.role, candidate=step.candidate, launch_index=launch_index, why=step.why,
        look=step.look, started_at=datetime.now(UTC).isoformat(timespec="seconds"), status=Status.FAILED,
        seconds=Seconds(0.0, 0.0, 0.0, 0.0), command=command, prompts_end=prompts_end,
        failure=Failure(FailureClass.WORKER_LOST, words, ""), place=step.place,
    )  # fmt: skip
    return record.without(secret_values([command]) | secret_variables(os.environ))
