"""What a study's launches have to themselves on this machine: a slot of the study, and a group of GPUs."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from spectune.engines.protocol import Engine
from spectune.machine import here
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.worker_variables import GPUS
from spectune.serving import GpuGroup, MachineLock, reserve_gpus, reserve_slot
from spectune.serving.held import Held
from spectune.serving.waiting import Says


@dataclass(frozen=True)
class Room(Held):
    """Held until `release`, or the end of this process.

    Attributes:
        slot: One of those that the study has on this machine.
        group: GPUs; none for an engine that uses none.
    """

    slot: MachineLock
    group: GpuGroup

    @property
    def place(self) -> str:
        """What the place of these launches is called: the machine, and the group where it is not all of the machine."""
        return here(self.group.part)

    def release(self) -> None:
        """Give all of it back; doing it twice is harmless."""
        self.group.release()
        self.slot.release()


async def room_for(study: str, name: str, engine: Engine, parallel: int, notes: Says) -> Room:
    """Wait until there is room for one more launch of a study on this machine, and take it.

    Args:
        study: What all its workers on this machine call it, and no other study is called.
        name: What people call it.
        engine: What is launched.
        parallel: Launches that the space allows at once on one machine.
        notes: Told who is waited for, now and then.

    Raises:
        SpectuneError: There was none for too long, or there can be none.
    """
    slot = await reserve_slot(study, name, parallel, notes)
    try:
        group = await reserve_gpus(engine.gpus_held, name, notes, variable=os.environ.get(GPUS))
    except BaseException:
        slot.release()
        raise
    return Room(slot, group)


async def room_for_launch(
    held: Room | None, study: Path, engine: Engine, parallel: int, notes: Says
) -> contextlib.AbstractContextManager[Room]:
    """Return the room that is held already and stays so, or take it until the launch is over; see `room_for`."""
    if held is not None:
        return contextlib.nullcontext(held)
    folder = StudyFolder(study)
    return await room_for(folder.realpath, folder.name, engine, parallel, notes)
