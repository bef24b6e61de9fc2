"""An event loop whose clock jumps to what is due next: how busy this machine is changes nothing a test measures."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar
from unittest.mock import patch

Answer = TypeVar("Answer")
LATE_S = 1e-6  # as real timers are, never early
LONG_S = 0.02
SETTLING_S = 0.002  # real seconds that a busy kernel may take to hand over what was sent on the loopback interface


class _Clock(selectors.DefaultSelector):
    """Waits for nothing but the network: where that is quiet, time passes."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 1000.0

    def monotonic(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += seconds

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select()
        found = super().select(SETTLING_S if timeout > LONG_S else 0.0)
        if not found:
            self._now_s += max(timeout, 0.0) + LATE_S
        return found


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Do what `asyncio.run` does, in virtual time; both ends of every connection belong into the loop."""
    clock = _Clock()
    with (
        patch.object(time, "monotonic", clock.monotonic),
        patch.object(time, "sleep", clock.sleep),
        asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(clock)) as runner,
    ):
        return runner.run(work)
