"""Ending what an earlier spectune left behind, and nothing else: processes that carry its mark and have no guard."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence

import psutil

from spectune.serving.leftovers import EngineProcess, find_processes
from spectune.serving.processes import SERVER_ID_VARIABLE, is_alive

END_WITHIN_S = 30.0


def end_leftovers() -> Sequence[EngineProcess]:
    """End the processes of engines that spectune started and that nobody is in charge of any more; return them.

    The mark in the environment is the proof: only spectune sets it, for the processes of one engine, which live under
    their guard as long as all is well. An abandoned guard, which has no mark, is woken first: it ends what it guards
    and removes its shared memory.
    """
    ours = [left for left in find_processes() if left.ours]
    guards = _tell(ours, psutil.Process.resume, marked=False)
    psutil.wait_procs(guards, END_WITHIN_S)
    engines = _tell(ours, psutil.Process.kill, marked=True)
    psutil.wait_procs(engines, END_WITHIN_S)
    return [left for left in ours if not _lives(left.pid)]


def _tell(
    processes: Iterable[EngineProcess], signal: Callable[[psutil.Process], None], *, marked: bool
) -> list[psutil.Process]:
    """Send a signal to those of the processes that carry the mark, or to those that do not; return them."""
    told = []
    for left in processes:
        with contextlib.suppress(psutil.Error, OSError):  # gone meanwhile
            process = psutil.Process(left.pid)
            if (SERVER_ID_VARIABLE in process.environ()) == marked:
                signal(process)
                told.append(process)
    return told


def _lives(pid: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return is_alive(psutil.Process(pid))
    return False
