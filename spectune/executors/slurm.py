"""Workers as the tasks of Slurm job arrays, submitted through submitit."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from spectune.errors import SpectuneError
from spectune.executors.protocol import State, WorkerCommand, WorkerSeen

if TYPE_CHECKING:
    from spectune.executors.submission import Submitted

PROGRAMS = ("sbatch", "squeue", "scancel")
PATIENCE_S = 120.0  # for Slurm to end what was cancelled; its own KillWait is 30 s by default
POLL_S = 1.0
ANSWER_S = 20.0
RARELY_S = 15.0  # between questions to a controller that others need too, once the workers are some minutes old
OURS = {"array", "chdir", "error", "job-name", "ntasks", "open-mode", "output", "parsable", "signal", "wrap"}
OF_GPUS = {"gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres"}
_OPTION = re.compile(r"[a-z][a-z0-9-]*")
_STATES = {
    "PENDING": State.WAITING, "CONFIGURING": State.WAITING, "REQUEUED": State.WAITING,
    "REQUEUE_HOLD": State.WAITING, "REQUEUE_FED": State.WAITING, "RESV_DEL_HOLD": State.WAITING,
    "SUSPENDED": State.WAITING,
    "RUNNING": State.RUNNING, "COMPLETING": State.RUNNING, "STOPPED": State.RUNNING, "SIGNALING": State.RUNNING,
    "STAGE_OUT": State.RUNNING, "RESIZING": State.RUNNING,
    "COMPLETED": State.DONE,
}  # fmt: skip
_LEAVING = {"COMPLETED", "COMPLETING", "SIGNALING", "STAGE_OUT"}
Task = tuple[str, str]
"""Number of a job array, and of a task in it."""


class SlurmExecutor:
    """Every worker is a task of a job array, on whatever node Slurm finds for it; a killed search leaves them there."""

    def __init__(self, options: Mapping[str, str | bool], *, name: str, gpus: int = 0) -> None:
        """Check that jobs can be submitted from here.

        Args:
            options: Of sbatch, without their dashes: `partition`, `time`, `gres`, …; True for one without a value.
            name: Of the job, as `squeue` shows it.
            gpus: Of one worker; asked for unless the options ask for some.

        Raises:
            SpectuneError: submitit or Slurm's commands are missing, or an option is not for the user to set.
        """
        if find_spec("submitit") is None:
            raise SpectuneError(
                "--executor slurm needs submitit: install it beside spectune with `pip install 'submitit>=1.5'`"
            )
        if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
            raise SpectuneError(
                f"--executor slurm needs Slurm's commands, but {', '.join(missing)} is not in PATH here"
            )
        wanted = {"gpus-per-node": str(gpus)} if gpus and not OF_GPUS & options.keys() else {}
        self._options, self._name = {**wanted, **options}, name
        self._submission: asyncio.Future[Submitted] | None = None
        self._seen: dict[Task, WorkerSeen] = {}
        self._began = self._asked = time.monotonic()

    async def start(self, command: WorkerCommand, count: int, logs: Path) -> None:
        """Submit as many as are missing; Slurm starts them when it has room for them.

        Workers that a killed search has left behind go on by themselves: they are known by the name of their job and
        the folder they were submitted from, and are followed like those that are submitted now.
        """
        from spectune.executors.submission import submit

        self._seen = await asyncio.to_thread(_left_behind, self._name, logs)
        if (missing := count - len(self._seen)) <= 0:
            return
        self._submission = asyncio.ensure_future(
            asyncio.to_thread(submit, command, missing, logs, self._options, name=self._name)
        )
        submitted = await asyncio.shield(self._submission)  # once it is on its way, only its answer says what to cancel
        for number, log in enumerate(submitted.logs):
            self._seen[submitted.job, str(number)] = WorkerSeen(State.WAITING, "submitted", log)

    async def look(self) -> Sequence[WorkerSeen]:
        """Return how each worker is; as it was last seen while Slurm does not answer, or was asked a moment ago."""
        now = time.monotonic()
        if self._seen and now - self._asked > min(RARELY_S, (now - self._began) / 20):
            self._asked = now
            self._seen = await asyncio.to_thread(_look, self._seen)
        return list(self._seen.values())

    async def end(self) -> None:
        """Cancel all of them and wait until Slurm has ended them."""
        jobs = {job for job, _ in self._seen}
        if self._submission is not None:
            submitted = (await asyncio.wait([self._submission]))[0].pop()
            if submitted.exception() is None:
                jobs.add(submitted.result().job)
        if jobs:
            await asyncio.to_thread(_cancel, sorted(jobs))


def parse_options(given: Sequence[str]) -> dict[str, str | bool]:
    """Return options of sbatch, `KEY=VALUE` or `KEY`, as a mapping; True for one without a value.

    Raises:
        SpectuneError: One has another form, or is set by spectune itself.
    """
    options: dict[str, str | bool] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not _OPTION.fullmatch(key) or not value.isprintable():
            raise SpectuneError(
                f"--slurm takes an option of sbatch as KEY=VALUE or KEY, such as partition=gpu, but got {text!r}"
            )
        if key in OURS:
            raise SpectuneError(f"--slurm {text}: spectune sets {key} itself")
        options[key] = value if equals else True
    return options


def _left_behind(name: str, logs: Path) -> dict[Task, WorkerSeen]:
    """Return the workers that an earlier start of the same search has in Slurm's queue or on its nodes.

    Raises:
        SpectuneError: Slurm does not say.
    """
    from spectune.executors.submission import log_of

    asked = _run("squeue", "--noheader", "--array", "--me", f"--name={name}", "--format=%F|%K|%T|%Z")
    if asked.returncode != 0:
        said = asked.stderr.strip() or f"exit code {asked.returncode}"
        raise SpectuneError(f"Slurm does not say which workers it has: {said}")
    here, found = str(Path.cwd()), {}
    for row in asked.stdout.splitlines():
        job, number, state, folder = row.split("|", 3)
        if folder == here and state in _STATES and state not in _LEAVING:
            words = f"{state}, of an earlier start"
            found[job, number] = WorkerSeen(_STATES[state], words, log_of(logs, job, number))
    return found


def _look(before: Mapping[Task, WorkerSeen]) -> dict[Task, WorkerSeen]:
    """Ask Slurm's queue, not its accounting: many clusters keep none."""
    jobs = ",".join(sorted({job for job, _ in before}))
    asked = _run("squeue", "--noheader", "--array", "--states=all", f"--jobs={jobs}", "--format=%F|%K|%T|%r")
    if asked.returncode != 0 and "Invalid job id" not in asked.stderr:
        return dict(before)
    rows = {(job, number): row for job, number, row in (line.split("|", 2) for line in asked.stdout.splitlines())}
    return {task: _seen(rows.get(task), seen) for task, seen in before.items()}


def _seen(row: str | None, before: WorkerSeen) -> WorkerSeen:
    if row is None:  # Slurm forgets a job minutes after its end
        return before if before.state.ended else WorkerSeen(State.FAILED, "no longer known to Slurm", before.log)
    state, _, reason = row.partition("|")
    words = state if reason in {"", "None"} else f"{state} ({reason})"
    return WorkerSeen(_STATES.get(state, State.FAILED), words, before.log)


def _cancel(jobs: Sequence[str]) -> None:
    deadline, told = time.monotonic() + PATIENCE_S, False
    while True:
        told = told or _run("scancel", *jobs).returncode == 0  # once: each is a signal, and a second one means haste
        asked = _run("squeue", "--noheader", "--array", f"--jobs={','.join(jobs)}")
        if not asked.stdout.strip() and (asked.returncode == 0 or "Invalid job id" in asked.stderr):
            return
        if time.monotonic() > deadline:
            raise SpectuneError(
                f"Slurm has not ended job {' '.join(jobs)}; see `squeue --jobs {','.join(jobs)}`, end it with "
                f"`scancel {' '.join(jobs)}`"
            )
        time.sleep(POLL_S)


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=ANSWER_S
        )
    except subprocess.TimeoutExpired:  # without a controller it tries for a minute
        return subprocess.CompletedProcess(argv, 1, "", "no answer")
