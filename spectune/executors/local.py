"""Workers on this machine."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

from spectune.counts import count
from spectune.errors import SpectuneError
from spectune.executors.protocol import State, WorkerCommand, WorkerSeen
from spectune.serving.guarded import GuardedTree

GRACE_S = 30.0  # a worker ends its engine first, which may take 8 s to leave and more to be killed


class LocalExecutor:
    """Every worker is a process of this machine under a guard: none outlives this process, however that ends."""

    def __init__(self) -> None:
        self._trees: list[GuardedTree] = []

    async def start(self, command: WorkerCommand, count: int, logs: Path) -> None:
        """Start the workers, one after the other."""
        for number in range(count):
            log = logs / f"worker-{number}.log"
            tree = GuardedTree(command.argv, {**os.environ, **command.env}, f"worker-{uuid.uuid4().hex}", log)
            await tree.start()
            self._trees.append(tree)

    async def look(self) -> Sequence[WorkerSeen]:
        """Return how each worker is."""
        return [_seen(tree) for tree in self._trees]

    async def end(self) -> None:
        """Ask all workers to leave, kill those that do not, and make sure that nothing is left."""
        ended = await asyncio.gather(*(tree.stop(GRACE_S) for tree in self._trees))
        if left := sum(teardown.left for teardown in ended):
            raise SpectuneError(f"{count(left, 'process')} of workers cannot be ended; see `ps -ef | grep spectune`")


def _seen(tree: GuardedTree) -> WorkerSeen:
    if not tree.exited.done():
        return WorkerSeen(State.RUNNING, "running", tree.log_path)
    code = tree.exited.result()
    words = "its guard was killed" if code is None else f"exit code {code}"
    return WorkerSeen(State.DONE if code == 0 else State.FAILED, words, tree.log_path)
