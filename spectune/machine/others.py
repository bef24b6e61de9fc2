"""What other programs used of the machine while something was measured, and whether that can be seen in the figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from spectune.machine.cores import CoresUsed
from spectune.machine.gpus import Gpu
from spectune.typed_json import require_types

LEAST_PERCENT = 5
"""Of a GPU's time; what only shows a desktop or watches the GPU takes less."""


@dataclass(frozen=True)
class Others:
    """What others used.

    Attributes:
        cores: Of the processor; None where the kernel does not tell.
        on_gpus: Who computed on which GPU of the launch, in words → percent of its time.
    """

    cores: CoresUsed | None = None
    on_gpus: Mapping[str, int] = field(default_factory=dict)

    @property
    def noticeable(self) -> bool:
        """Whether they took something that was missed."""
        return bool(self.on_gpus) or (self.cores is not None and self.cores.short)

    def __str__(self) -> str:
        used = [f"{percent} % of {where}" for where, percent in self.on_gpus.items()]
        if self.cores is not None and self.cores.short:
            used.insert(0, str(self.cores))
        return " and ".join(used) or "nothing that was missed"

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in `result.json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Others:
        """Read what `to_json` wrote.

        Raises:
            KeyError, TypeError: It is no such entry.
        """
        cores = content["cores"]
        return require_types(cls(None if cores is None else require_types(CoresUsed(**cores)), content["on_gpus"]))


def computing(gpus: Iterable[Gpu]) -> dict[str, int]:
    """Return which processes took a share of the GPUs' time worth a word, in words → percent."""
    return {
        f"GPU {gpu.index} ({process.name or 'a process'}, pid {process.pid})": process.busy_percent
        for gpu in gpus
        for process in gpu.processes or ()
        if process.busy_percent is not None and process.busy_percent >= LEAST_PERCENT
    }
