"""What starts workers somewhere, and knows how they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol


class State(StrEnum):
    """Where a worker is between its start and its end."""

    WAITING = "waiting"  # for a machine
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self in {State.DONE, State.FAILED}


@dataclass(frozen=True)
class WorkerCommand:
    """A program that works until its study has ended, or until it gets SIGTERM.

    Attributes:
        argv: Program and arguments; everybody on the machine may read them.
        env: What it needs beside the environment of this process; secrets belong here.
    """

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkerSeen:
    """How one worker is.

    Attributes:
        state: In one of four words.
        words: In the executor's own: `PENDING (Resources)`, `exit code 2`.
        log: File with everything it printed; there once it has begun.
    """

    state: State
    words: str
    log: Path


class Executor(Protocol):
    """Sees once that a number of equal workers is there, and ends them."""

    async def start(self, command: WorkerCommand, count: int, logs: Path) -> None:
        """Start the workers, or put them into a queue; those that an earlier start has left behind count.

        Args:
            command: What each of them runs.
            count: How many.
            logs: Folder for what they print, made where it is missing; workers on other machines must reach it.

        Raises:
            SpectuneError: They cannot be started; none of them is left then once `end` was called.
        """
        ...

    async def look(self) -> Sequence[WorkerSeen]:
        """Return how each worker is; in the same order every time."""
        ...

    async def end(self) -> None:
        """End all workers, each with the time to end its engine; nothing of them is left afterwards.

        May be called at any time, also when `start` was interrupted.

        Raises:
            SpectuneError: Some are still there, and how to see them.
        """
        ...
