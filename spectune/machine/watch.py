"""Whether the machine stays what it was, from one launch to the next and during one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from spectune.machine.differences import Difference, differences, throttling
from spectune.machine.fingerprint import quick_fingerprint


class MachineWatch:
    """Looks at the machine before a launch, and whenever asked while its engine runs."""

    def __init__(self, since: Mapping[str, Any], engine: str | None = None) -> None:
        """Look for the first time, before the launch.

        Args:
            since: Fingerprint to compare with: the study's own. An empty one gives no differences.
            engine: Name and version of the engine that is launched now.
        """
        self._since, self._engine = since, engine
        self._before = quick_fingerprint(engine=engine)
        self._seen: dict[str, Difference] = {}
        self._note(differences(since, self._before))

    @property
    def changes(self) -> tuple[Difference, ...]:
        """What was not as it was when the study began, at any look, and what held the GPUs back during this launch."""
        return tuple(sorted(self._seen.values(), key=lambda change: (not change.matters, change.field)))

    def look(self, own: Collection[int]) -> None:
        """Look again.

        Args:
            own: The engine's processes, which are no strangers on the GPUs.
        """
        now = quick_fingerprint(own, self._engine)
        self._note([*differences(self._since, now), *throttling(self._before, now)])

    def _note(self, changes: Iterable[Difference]) -> None:
        for change in changes:
            before = self._seen.get(change.field)
            if before is None or change.matters >= before.matters:
                self._seen[change.field] = change
