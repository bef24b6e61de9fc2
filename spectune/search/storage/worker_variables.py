"""Whether the variables of a launch reached the processes that do the work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spectune.counts import count
from spectune.engines.protocol import LaunchCommand

GPUS = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Reached:
    """One variable, read back from every worker's own environment.

    Attributes:
        name: Of the variable.
        wanted: Its value; None for one that must be absent.
        workers: Workers in which it is as wanted.
        of: All workers.
    """

    name: str
    wanted: str | None
    workers: int
    of: int

    @property
    def words(self) -> str:
        """Return it as a sentence without a full stop."""
        value = f"{self.name} unset" if self.wanted is None else f"{self.name}={self.wanted}"
        return f"{value} reached {self.workers} of {count(self.of, 'worker')}"

    def to_json(self) -> dict[str, Any]:
        """Return an entry of `environment_reached` in `result.json`."""
        return asdict(self)


def read_back(
    command: LaunchCommand, workers: Sequence[Mapping[str, str]], set_by_launcher: Collection[str]
) -> tuple[Reached, ...]:
    """Compare a launch's variables with its workers' environments.

    Args:
        command: The launch.
        workers: The environment of each worker.
        set_by_launcher: Variables that the engine's launcher adds by itself: their presence proves nothing.
    """
    absent = [name for name in command.unset if name not in set_by_launcher]
    wanted: list[tuple[str, str | None]] = [*sorted(command.env.items()), *((name, None) for name in absent)]
    return tuple(
        Reached(name, value, sum(_has(worker, name, value) for worker in workers), len(workers))
        for name, value in wanted
    )


def _has(worker: Mapping[str, str], name: str, value: str | None) -> bool:
    found = worker.get(name)
    if name == GPUS and found and value:  # a launcher may give each worker only one of them
        return set(found.split(",")) <= set(value.split(","))
    return found == value
