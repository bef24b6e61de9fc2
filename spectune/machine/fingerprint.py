"""What a machine is at one moment: the content of a study's `environment.json`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from spectune.machine.gpus import Gpus
from spectune.machine.host import Host, read_host
from spectune.machine.nvml import read_gpus
from spectune.machine.software import Software, read_software

SCHEMA = 2  # 1 was a flat list of a few facts
SIMULATED_MACHINE = "simulated_machine"
"""Key of an `environment.json`: the machine that launches were simulated on, in words. All else is of this one."""


@dataclass(frozen=True)
class Fingerprint:
    """All that tells this machine and software from another.

    Attributes:
        taken_at: ISO 8601 time in UTC.
    """

    taken_at: str
    gpus: Gpus
    host: Host
    software: Software

    def to_json(self) -> dict[str, Any]:
        """Return the content of `environment.json`."""
        return {"schema": SCHEMA, "engine": self.software.engine, **asdict(self)}


def take_fingerprint(
    engine: str | None = None,
    *,
    packages: Mapping[str, str] | None = None,
    engine_sitecustomize: str | None = None,
    own: Collection[int] = (),
) -> Fingerprint:
    """Read this machine; never fails, what cannot be read is None.

    Args:
        engine: Name and version of the engine a study launches.
        packages: Versions in its interpreter (`Engine.software`).
        engine_sitecustomize: The `sitecustomize` of its interpreter.
        own: Processes that are no strangers on the GPUs.
    """
    software = read_software(os.environ, engine=engine, packages=packages, engine_sitecustomize=engine_sitecustomize)
    taken_at = datetime.now(UTC).isoformat(timespec="seconds")
    return Fingerprint(taken_at, read_gpus(own), read_host(), software)
