"""Where workers run: on this machine, or where Slurm puts them."""

from spectune.executors.local import LocalExecutor
from spectune.executors.protocol import Executor, State, WorkerCommand, WorkerSeen
from spectune.executors.slurm import SlurmExecutor, parse_options

__all__ = [
    "Executor",
    "LocalExecutor",
    "SlurmExecutor",
    "State",
    "WorkerCommand",
    "WorkerSeen",
    "parse_options",
]
