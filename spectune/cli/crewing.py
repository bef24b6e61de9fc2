"""The workers that `spectune search --executor` starts: where, how many, and what each of them runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spectune.cli.opening import Shared
from spectune.cli.program import STORAGE_VARIABLE, TORCH_INDEX_VARIABLE, ExecutorKind
from spectune.errors import SpectuneError
from spectune.executors import Executor, LocalExecutor, SlurmExecutor, WorkerCommand, parse_options
from spectune.search.shared.worker import MOST_WORKERS
from spectune.space import SearchSpace


@dataclass(frozen=True)
class Crew:
    """Workers that a search starts, instead of making launches itself.

    Attributes:
        kind: What starts them.
        workers: How many.
        options: Of sbatch.
    """

    kind: ExecutorKind
    workers: int
    options: Mapping[str, str | bool]

    @property
    def here(self) -> bool:
        """Whether they run on this machine."""
        return self.kind is ExecutorKind.LOCAL

    def executor(self, study: str, space: SearchSpace) -> Executor:
        """Return what starts them.

        Raises:
            SpectuneError: It cannot be used here.
        """
        if self.here:
            allowed = space.engine.parallel
            if self.workers > allowed and not space.engine.virtual:
                raise SpectuneError(
                    f"--nodes {self.workers} on this machine: the space allows {allowed} at once here; "
                    f"write engine.parallel: {self.workers} into it, or start fewer"
                )
            return LocalExecutor()
        gpus = 0 if space.engine.is_simulated else space.engine.gpus
        return SlurmExecutor(self.options, name=f"spectune-{study}", gpus=gpus)

    def command(self, study: str, shared: Shared, torch_index: str | None) -> WorkerCommand:
        """Return what each of them runs: `spectune worker`, with what may hold a password where nobody reads it off."""
        argv = [sys.executable, "-m", "spectune", "worker", study]
        if shared.other_engine:
            argv.append("--allow-other-engine")
        if shared.place:
            argv += ["--place", shared.place]
        index = {} if torch_index is None else {TORCH_INDEX_VARIABLE: torch_index}
        return WorkerCommand(argv, {STORAGE_VARIABLE: shared.storage, **index})


def crew_by(
    kind: ExecutorKind | None, *, nodes: int | None, slurm: Sequence[str], shared: Shared | None
) -> Crew | None:
    """Return the workers that the options ask for, None where they ask for none.

    Raises:
        SpectuneError: The options do not go together.
    """
    if kind is None:
        given = "--nodes" if nodes is not None else "--slurm" if slurm else None
        if given is not None:
            raise SpectuneError(f"{given} says how workers are started: add --executor local or --executor slurm")
        return None
    if shared is None:
        raise SpectuneError(
            f"--executor {kind} starts workers, which share the study through a database: add --storage URL, or "
            f"set ${STORAGE_VARIABLE}"
        )
    if nodes is None:
        raise SpectuneError(f"--executor {kind} needs --nodes N, the number of workers")
    if nodes >= MOST_WORKERS:
        raise SpectuneError(
            f"--nodes {nodes}: at most {MOST_WORKERS - 1} workers share a folder of studies; start the others in "
            "another one with `spectune worker`"
        )
    if slurm and kind is not ExecutorKind.SLURM:
        raise SpectuneError(f"--slurm {slurm[0]} is for --executor slurm")
    return Crew(kind, nodes, parse_options(slurm))
