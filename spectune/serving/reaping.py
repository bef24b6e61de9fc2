"""Ending what an earlier spectune left behind, and nothing else: processes that carry its mark and have no guard."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import psutil

from spectune.serving.leftovers import EngineProcess, find_processes
from spectune.serving.processes import SERVER_ID_VARIABLE

END_WITHIN_S = 30.0


def end_leftovers() -> Sequence[EngineProcess]:
    """Kill the processes of engines that spectune started and that nobody is in charge of any more; return them.

    The mark in the environment is the proof: only spectune sets it, for the processes of one engine, which live under
    their guard as long as all is well.
    """
    ended: list[EngineProcess] = []
    killed = []
    for left in find_processes():
        with contextlib.suppress(psutil.Error, OSError):  # gone meanwhile
            process = psutil.Process(left.pid)
            if left.ours and SERVER_ID_VARIABLE in process.environ():
                process.kill()
                killed.append(process)
                ended.append(left)
    psutil.wait_procs(killed, END_WITHIN_S)
    return ended
