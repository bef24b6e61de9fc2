"""Which failures of the profile a launch meets, and at which of its points."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from spectune.engines.simulated import memory
from spectune.engines.simulated.profile import Profile
from spectune.engines.simulated.profile_schema import Fault, Kind, Point
from spectune.engines.simulated.setup import Setup
from spectune.errors import SpectuneError

POINTS: tuple[Point, ...] = get_args(Point)
# A launch that meets one of these gives no measurement that could be used.
DECISIVE: frozenset[Kind] = frozenset(
    {"oom", "unsupported", "crash", "hang", "nccl", "port_in_use", "garbage_output", "http_500", "partial_failure"}
)


@dataclass(frozen=True)
class Failure:
    """Where a launch fails, and how."""

    at: Point
    kind: Kind


DIES_LOADING = Failure("load", "unsupported")
"""How most launches end that SGLang resolves, but cannot run."""


@dataclass(frozen=True)
class Doom:
    """An end that SGLang's own rules foretell.

    Attributes:
        failure: Where and how.
        error: The exception the log ends with.
        advice: The way out, where one is known.
    """

    failure: Failure
    error: str
    advice: str = ""


@dataclass(frozen=True)
class FaultPlan:
    """The faults of one launch.

    Attributes:
        due: (index in the profile, fault) of those that fire.
        failure: Its own, without any fault: what does not fit, or does not go together.
    """

    due: tuple[tuple[int, Fault], ...]
    failure: Failure | None

    @classmethod
    def of(cls, profile: Profile, setup: Setup, fired: Mapping[int, int], doom: Failure | None = None) -> FaultPlan:
        """Say what a launch will meet.

        Args:
            profile: The machine.
            setup: The launch.
            fired: How often each fault has fired in this study so far, by index in the profile.
            doom: How the engine's own rules let it end.
        """
        due = tuple(
            (index, fault)
            for index, (when, fault) in enumerate(profile.faults)
            if when.holds(setup.values) and (fault.times is None or fired.get(index, 0) < fault.times)
        )
        own = [own_failure(profile, setup), doom]
        return cls(due, _first([failure for failure in own if failure is not None]))

    def at(self, point: Point) -> tuple[tuple[int, Fault], ...]:
        """Return the faults that fire at a point."""
        return tuple((index, fault) for index, fault in self.due if fault.at == point)

    @property
    def first_decisive(self) -> Failure | None:
        """The first failure that leaves the launch without a measurement."""
        failures = [Failure(fault.at, fault.kind) for _, fault in self.due if fault.kind in DECISIVE]
        if self.failure is not None:
            failures.insert(0, self.failure)
        return _first(failures)


def _first(failures: list[Failure]) -> Failure | None:
    return min(failures, key=lambda failure: POINTS.index(failure.at), default=None)


def own_failure(profile: Profile, setup: Setup) -> Failure | None:
    """Return how a launch fails that asks for more GPUs or memory than there are, None if everything fits."""
    if setup.ranks > profile.file.gpu.count:
        return Failure("startup", "crash")
    if not memory.weights_fit(profile.file, setup):
        return Failure("startup", "oom")
    return None if memory.graphs_fit(profile.file, setup) else Failure("capture", "oom")


class FiredInFile:
    """The study's count of fired faults, in a file that survives the launch: one index per line."""

    def __init__(self, path: Path | None) -> None:
        """Name the file; without one every launch is a study of its own."""
        self._path = path

    def counts(self) -> Counter[int]:
        """Return how often each fault has fired.

        Raises:
            SpectuneError: The file holds something else.
        """
        if self._path is None or not self._path.exists():
            return Counter()
        try:
            return Counter(int(line) for line in self._path.read_text("ascii").split())
        except (OSError, ValueError) as error:
            raise SpectuneError(f"{self._path} is not a record of fired faults: {error}") from None

    def note(self, index: int) -> None:
        """Count one more; written at once, because the process may be about to die."""
        if self._path is None:
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, f"{index}\n".encode())
        finally:
            os.close(descriptor)
