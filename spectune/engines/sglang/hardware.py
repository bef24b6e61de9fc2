"""The machines SGLang's defaults are known for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from spectune.errors import SpectuneError
from spectune.printable import printable


@dataclass(frozen=True)
class Machine:
    """What SGLang's resolver asks of the hardware.

    Attributes:
        name: As on the command line.
        device: `cuda` or `cpu`.
        compute_capability: 90 for Hopper, 100 and 120 for Blackwell; 0 for a CPU.
        memory_gib: Of one GPU, or of one NUMA node of a CPU.
        tested: Whether launches on such a machine bore the rules out. Otherwise SGLang's own resolver was asked with
            its facts standing in for its probes, and what dies later was only read in its source.
    """

    name: str
    device: str
    compute_capability: int
    memory_gib: float
    tested: bool

    @property
    def memory_mib(self) -> float:
        """Its memory in the unit SGLang counts in."""
        return self.memory_gib * 1024


MACHINES: Mapping[str, Machine] = MappingProxyType(
    {
        machine.name: machine
        for machine in (
            Machine("h100", "cuda", 90, 79.6, tested=False),
            Machine("h200", "cuda", 90, 140.0, tested=False),
            Machine("b200", "cuda", 100, 179.0, tested=False),
            Machine("rtx-pro-6000", "cuda", 120, 95.6, tested=False),
            Machine("cpu", "cpu", 0, 24.0, tested=True),
        )
    }
)
"""By name. Memory as the driver reports it; a CPU's depends on the machine and only moves the memory fraction."""


def machine_named(gpu: str) -> Machine:
    """Return the machine of a name somebody typed.

    Raises:
        SpectuneError: No rules are known for it.
    """
    name = gpu.strip().lower()
    if name not in MACHINES:
        known = ", ".join(MACHINES)
        raise SpectuneError(f"--gpu must be one of {known} (other GPUs are not known), but got {printable(name, 60)!r}")
    return MACHINES[name]
