"""Work that Ctrl-C, SIGTERM and a closed terminal end in good order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from spectune.cli.terminal import PROGRESS
from spectune.search.launch.trial import STOP_GRACE_S

T = TypeVar("T")

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENDING_WORDS = f"interrupted: ending what is under way; an engine has {STOP_GRACE_S:.0f} s to leave, then it is killed"


def run_interruptible(work: Coroutine[Any, Any, T]) -> T | None:
    """Run `work` to its end; None when a signal ended it, everything it started being gone by then.

    The event loop takes the signals, Ctrl-C too: what asyncio makes of a second one is raised wherever the program is,
    and some libraries take it for an error of theirs. Whoever gave the first is told at once what it waits for.
    """

    def end(task: asyncio.Task[Any]) -> None:
        if not task.cancelling():
            PROGRESS.print(ENDING_WORDS, markup=False)
        task.cancel()

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # under `nohup` it goes on
                asyncio.get_running_loop().add_signal_handler(number, end, task)
        return await work

    before = signal.getsignal(signal.SIGTERM)
    try:
        return asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return None
    finally:
        signal.signal(signal.SIGTERM, before)  # asyncio leaves the system's own way, which is to end without a word
