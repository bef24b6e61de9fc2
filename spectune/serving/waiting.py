"""Waiting for what others have: who has it is said, and after a limit it ends in words."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from spectune.errors import SpectuneError

PROGRAM_S = 900.0  # how long somebody else's program on a GPU is waited for
SPECTUNE_S = 12 * 3600.0  # likewise another spectune, whose launches end
POLL_S = 1.0
REMINDER_S = 600.0  # between two lines of a log that say the same

Got = TypeVar("Got")
Says = Callable[[str], None]


@dataclass(frozen=True)
class InTheWay:
    """Why something cannot be had now.

    Attributes:
        who: Who has it, in words.
        way_out: What to do about it, as a sentence.
        patience_s: How long to wait.
    """

    who: str
    way_out: str
    patience_s: float


async def wait_for(
    attempt: Callable[[], Awaitable[Got | InTheWay]], says: Says, poll_s: float = POLL_S, *, every_s: float = 0.0
) -> Got:
    """Return what `attempt` gives, as soon as nobody is in its way.

    Args:
        attempt: Tries once, at once.
        says: Told who is waited for.
        poll_s: Between two attempts.
        every_s: Between two words about it; 0 for words after each attempt.

    Raises:
        SpectuneError: Somebody was in its way for too long.
    """
    began, said_s = None, -math.inf
    while isinstance(got := await attempt(), InTheWay):
        now = time.monotonic()
        began = now if began is None else began  # from the first look on, however slow: whoever is there is told of
        waited_s = now - began
        if waited_s > got.patience_s:
            raise SpectuneError(f"{got.who}, for {waited_s / 60:.0f} minutes now. {got.way_out}")
        if waited_s - said_s >= every_s:
            says(f"waiting {waited_s:.0f} s: {got.who}")
            said_s = waited_s
        await asyncio.sleep(poll_s)
    return got
