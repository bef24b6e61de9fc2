from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from spectune.errors import SpectuneError
from spectune.serving import reserve_slot
from spectune.serving.machine_lock import MachineLock


def slot(folder: Path, parallel: int, key: str = "/studies/one", notes: list[str] | None = None) -> MachineLock:
    says = (notes if notes is not None else []).append
    return asyncio.run(reserve_slot(key, "one", parallel, says, folder=folder, poll_s=0.01, patience_s=0.05))


def test_a_study_makes_one_launch_at_once_unless_its_space_allows_more(tmp_path: Path) -> None:
    notes: list[str] = []
    with slot(tmp_path, 1):
        with pytest.raises(SpectuneError, match=r"engine\.parallel: 1 allows .*for 0 minutes now\. .*engine\.parallel"):
            slot(tmp_path, 1, notes=notes)
        with slot(tmp_path, 1, key="/studies/two"):
            pass
    holder = f"spectune (pid {os.getpid()}) for the study one"
    assert notes == [f"waiting 0 s: {holder} has all that engine.parallel: 1 allows on this machine"], "said once"
    with contextlib.ExitStack() as held:
        for _ in range(3):
            held.enter_context(slot(tmp_path, 3))
        with pytest.raises(SpectuneError, match=r"engine\.parallel: 3 allows"):
            slot(tmp_path, 3)
    assert list(tmp_path.iterdir()) == []


def test_a_slot_is_had_as_soon_as_it_is_given_back(tmp_path: Path) -> None:
    async def second() -> MachineLock:
        first = await reserve_slot("k", "one", 1, print, folder=tmp_path, poll_s=0.01)
        waiting = asyncio.ensure_future(
            reserve_slot("k", "one", 1, lambda _: first.release(), folder=tmp_path, poll_s=0)
        )
        return await waiting

    asyncio.run(second()).release()


def test_who_is_interrupted_while_waiting_holds_nothing(tmp_path: Path) -> None:
    async def interrupted() -> None:
        with await reserve_slot("k", "one", 1, print, folder=tmp_path):
            waiting = asyncio.ensure_future(reserve_slot("k", "one", 1, lambda _: None, folder=tmp_path))
            await asyncio.sleep(0)
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting

    asyncio.run(interrupted())
    slot(tmp_path, 1).release()
