"""The whole file, section by section; what its sections mean for each other is checked in `crosschecks`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from spectune.space.engine_section import EngineSection
from spectune.space.goals import DEFAULT_TRIALS, Budget, Constraint, Objective, Targets
from spectune.space.sections import Listed, Positive, Section, readable
from spectune.space.workload import Workload

SCHEMA = 1


class SpaceFile(Section):
    """A search space as it stands in a file, defaults filled in.

    Attributes:
        schema_version: `schema` in the file.
        name: Of the space, and of studies made from it; letters, digits, `.`, `_` and `-`.
        search: Name → raw domain; `SearchSpace.parameters` holds what they mean.
        forbid: Raw conditions; `SearchSpace.forbid` holds what they mean.
    """

    schema_version: Annotated[Positive, Field(alias="schema"), readable(SCHEMA)]
    name: Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    engine: EngineSection
    search: dict[str, Any] = Field(min_length=1)
    forbid: Annotated[tuple[dict[str, Any], ...], Listed] = ()
    workload: Workload = Field(default_factory=Workload)
    objectives: Annotated[tuple[Objective, ...], Listed] = ()
    constraints: Annotated[tuple[Constraint, ...], Listed] = ()
    targets: Targets = Field(default_factory=Targets)
    budget: Budget = Field(default_factory=lambda: Budget(trials=DEFAULT_TRIALS))


def default_objectives(workload: Workload) -> tuple[Objective, ...]:
    """Return the objectives of a file that names none: speed at the first level, throughput at the last.

    Where requests arrive by the clock the throughput is what is asked for, so there the speed counts.
    """
    first, last = workload.levels[0], workload.levels[-1]
    speed = Objective(maximize="decode_speed", level=first.name)
    if last.open_loop:
        return tuple(dict.fromkeys((speed, Objective(maximize="decode_speed", level=last.name))))
    # At concurrency 1 alone the two are the same figure twice.
    return (speed,) if last.concurrency == 1 else (speed, Objective(maximize="output_throughput", level=last.name))
