"""Whether the machine stays what it was and is left to the engine, from one launch to the next and during one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from spectune.machine.cores import CoreMeter
from spectune.machine.differences import Difference, differences, throttling, without_gpus
from spectune.machine.fingerprint import take_fingerprint
from spectune.machine.gpus import visible
from spectune.machine.others import Others, computing


class MachineWatch:
    """Looks at the machine before a launch, and whenever asked while its engine runs."""

    def __init__(
        self, since: Mapping[str, Any], engine: str | None = None, *, gpus: int = 0, variable: str | None = None
    ) -> None:
        """Look for the first time, before the launch.

        Args:
            since: Fingerprint to compare with: the study's own. An empty one gives no differences.
            engine: Name and version of the engine that is launched now.
            gpus: GPUs it computes on, of the machine's others nothing is noted; 0 where it uses none.
            variable: Its CUDA_VISIBLE_DEVICES, None where that is not set.
        """
        before = take_fingerprint(engine)
        own = {gpu.key for gpu in visible(before.gpus.devices, variable)[:gpus]}
        self._elsewhere = {gpu.key for gpu in before.gpus.devices if own and gpu.key not in own}
        self._since, self._engine = without_gpus(since, self._elsewhere), engine
        self._gpus, self._variable = gpus, variable
        self._before = without_gpus(before.to_json(), self._elsewhere)
        self._seen: dict[str, Difference] = {}
        self._note(differences(self._since, self._before))
        self._meter = CoreMeter()

    @property
    def changes(self) -> tuple[Difference, ...]:
        """What was not as it was when the study began, at any look, and what held the GPUs back during this launch."""
        return tuple(sorted(self._seen.values(), key=lambda change: (not change.matters, change.field)))

    def begin(self) -> None:
        """Begin what the next look ends."""
        self._meter.begin()

    def look(self, own: Collection[int]) -> Others:
        """Look again; returns what others used since the beginning.

        Args:
            own: The engine's processes, which are no strangers on the GPUs.
        """
        cores = self._meter.read()
        now = take_fingerprint(self._engine, own=own)
        told = without_gpus(now.to_json(), self._elsewhere)
        self._note([*differences(self._since, told), *throttling(self._before, told)])
        return Others(cores, computing(visible(now.gpus.devices, self._variable)[: self._gpus]))

    def _note(self, changes: Iterable[Difference]) -> None:
        for change in changes:
            before = self._seen.get(change.field)
            if before is None or change.matters >= before.matters:
                self._seen[change.field] = change
