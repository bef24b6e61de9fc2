"""How many launches of one study run at once on a machine: they share its PCIe, its host memory and its processor."""

from __future__ import annotations

import hashlib
from pathlib import Path

from spectune.serving.machine_lock import MachineLock, holder_of, try_lock
from spectune.serving.waiting import POLL_S, REMINDER_S, SPECTUNE_S, InTheWay, Says, wait_for


async def reserve_slot(
    key: str, study: str, parallel: int, notes: Says, *, folder: Path | None = None, poll_s: float = POLL_S,
    patience_s: float = SPECTUNE_S,
) -> MachineLock:  # fmt: skip
    """Take one of a study's slots on this machine, as soon as one is free.

    Args:
        key: What tells the study from all others, the same for all its workers on this machine.
        study: Its name, for messages.
        parallel: Slots it has.
        notes: Told who is waited for, now and then.
        folder: Of the locks.
        poll_s: Between two attempts.
        patience_s: After which it is given up.

    Raises:
        SpectuneError: None became free in time.
    """
    digest = hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    names = [f"slot-{digest}-{number}" for number in range(parallel)]

    async def attempt() -> MachineLock | InTheWay:
        for name in names:
            if (lock := try_lock(name, study, folder)) is not None:
                return lock
        holders = sorted({str(holder_of(name, folder)) for name in names})
        who = f"{'; '.join(holders)} has all that engine.parallel: {parallel} allows on this machine"
        return InTheWay(who, "End it, or allow more launches at once with engine.parallel in a new study", patience_s)

    return await wait_for(attempt, notes, poll_s, every_s=REMINDER_S)
