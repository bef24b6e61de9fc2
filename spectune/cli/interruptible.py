"""Work that Ctrl-C and SIGTERM end in good order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_interruptible(work: Coroutine[Any, Any, T]) -> T | None:
    """Run `work` to its end; None when Ctrl-C or SIGTERM ended it, everything it started being gone by then."""

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    before = signal.getsignal(signal.SIGTERM)
    try:
        return asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return None
    finally:
        signal.signal(signal.SIGTERM, before)  # asyncio leaves the system's own way, which is to end without a word
