"""Work that Ctrl-C, SIGTERM and a closed terminal end in good order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_interruptible(work: Coroutine[Any, Any, T]) -> T | None:
    """Run `work` to its end; None when a signal ended it, everything it started being gone by then.

    The event loop takes the signals, Ctrl-C too: what asyncio makes of a second one is raised wherever the program is,
    and some libraries take it for an error of theirs.
    """

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # under `nohup` it goes on
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await work

    before = signal.getsignal(signal.SIGTERM)
    try:
        return asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return None
    finally:
        signal.signal(signal.SIGTERM, before)  # asyncio leaves the system's own way, which is to end without a word
