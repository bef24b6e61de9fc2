"""The one place that imports submitit: a plain command as a Slurm job array.

submitit is made for functions, which it pickles into a folder that the job unpickles. Whoever can write there has the
job's rights, so nothing is pickled here: the batch script holds the workers' command line.
"""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from submitit import SlurmExecutor
from submitit.core.utils import FailedJobError, FailedSubmissionError, environment_variables

from spectune.errors import SpectuneError
from spectune.executors.protocol import WorkerCommand

NOTICE_S = 60
"""Seconds before its time limit at which a worker is told to end; Slurm's own KillWait of 30 s may be too short."""


@dataclass(frozen=True)
class Submitted:
    """A job array in Slurm's hands.

    Attributes:
        job: Its number.
        logs: What each task prints.
    """

    job: str
    logs: tuple[Path, ...]


def submit(
    command: WorkerCommand, count: int, logs: Path, options: Mapping[str, str | bool], *, name: str
) -> Submitted:
    """Submit `count` tasks that each run the command.

    Args:
        command: What to run; its variables travel with the environment of this process, as Slurm does it.
        count: How many tasks.
        logs: Where the batch script and the logs go; for nobody else to read.
        options: Of sbatch, without their dashes; True for one without a value.
        name: Of the job.

    Raises:
        SpectuneError: With Slurm's own words.
    """
    try:
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        array = _CommandArray(logs)
        array.update_parameters(
            job_name=name, time=None, wckey=None, use_srun=False, stderr_to_stdout=True,
            additional_parameters={"signal": f"B:TERM@{NOTICE_S}", **options},
        )  # fmt: skip
        # submitit prints what sbatch says beside raising it.
        with environment_variables(**command.env), contextlib.redirect_stderr(io.StringIO()):
            job = array.submit_command(command, count)
    except (FailedJobError, FailedSubmissionError, RuntimeError) as error:
        said = [line.removeprefix("sbatch: ").removeprefix("error: ") for line in str(error).splitlines()]
        raise SpectuneError(f"Slurm does not take the job: {'; '.join(said)}") from None
    except OSError as error:
        raise SpectuneError(f"cannot write the batch script to {logs}: {error.strerror or error}") from None
    return Submitted(job, tuple(log_of(array.folder, job, str(task)) for task in range(count)))


def log_of(folder: Path, job: str, task: str) -> Path:
    """Return where submitit lets a task of an array print to."""
    return folder / f"{job}_{task}_0_log.out"


class _CommandArray(SlurmExecutor):
    """submitit's executor, for commands in place of functions."""

    def submit_command(self, command: WorkerCommand, count: int) -> str:
        """Submit an array and return the number of the job."""
        self.parameters["map_count"] = count
        # exec: Slurm's signals are for the worker, and a shell that died of them would end the worker's time to leave.
        return self._submit_command(f"exec {shlex.join(command.argv)}").job_id
