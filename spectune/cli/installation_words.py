"""How an installation gets on: a bar on a terminal, elsewhere a line now and then, also while a step says nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from spectune.cli.terminal import clock

EVERY_S = 15.0  # between two lines, where something has changed
SILENT = 4  # times that, where nothing has
ENOUGH = 0.05
"""Share of an installation that has to be done before it says how long the rest takes."""
Tell = Callable[[str, float | None], None]
"""Gets the step under way, and the share of the whole that is done; None while that is not known."""


@contextmanager
def told(console: Console, first: str) -> Iterator[Tell]:
    """Say what is going on until the end of the block, `first` to begin with."""
    if console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task(first, total=None)

            def tell(step: str, share: float | None) -> None:
                bar.update(task, description=step, total=None if share is None else 1.0, completed=share or 0.0)

            yield tell
    else:
        with Lines(console, first) as lines:
            yield lines


def _bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True)


class Lines:
    """What is going on: a line at the beginning, one every few seconds as it gets on, fewer where not.

    Attributes:
        began: When, on the monotonic clock.
    """

    def __init__(self, console: Console, first: str, every_s: float = EVERY_S) -> None:
        self._console, self._every_s = console, every_s
        self._step = first
        self._share: float | None = None
        self.began = time.monotonic()
        self._known: tuple[float, float] | None = None  # share at the first line that knew one, and when that was
        self._told, self._told_at = (first, ""), self.began
        self._over = threading.Event()
        self._teller = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Self:
        self._console.print(self._step, markup=False)
        self._teller.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._teller.join()

    def __call__(self, step: str, share: float | None) -> None:
        """Take up what is going on now."""
        self._step, self._share = step, share

    def _tell(self) -> None:
        while not self._over.wait(self._every_s):
            if (line := self.line(time.monotonic())) is not None:
                self._console.print(line, markup=False)

    def line(self, now: float) -> str | None:
        """Return what to say at a moment, None where it would repeat the last line."""
        step, share, left_s = self._step, self._share, None
        moved = self._told != (step, percent(share))
        if not moved and now - self._told_at < SILENT * self._every_s:
            return None
        if share is not None:  # what an earlier installation had done is told at once, and is no pace
            known, since = self._known = self._known or (share, now)
            left_s = left(share - known, 1.0 - share, now - since) if moved else None  # nor is standing still
        self._told, self._told_at = (step, percent(share)), now
        return standing(step, share, now - self.began, left_s)


def left(done: float, to_come: float, elapsed_s: float) -> float | None:
    """Return the seconds that the rest takes at the pace so far; None while too little is done to know one.

    Args:
        done: Share that was done in the time.
        to_come: Share that is left.
        elapsed_s: The time, in seconds.
    """
    return None if done < ENOUGH else elapsed_s * to_come / done


def percent(share: float | None) -> str:
    """Return a share as a line has it; nothing while it is not known."""
    return "" if share is None else f"{share:.0%}"


def standing(step: str, share: float | None, elapsed_s: float, left_s: float | None) -> str:
    """Return how far it is, in a line."""
    done = f"{percent(share)} done, " if share is not None else ""
    rest = "" if left_s is None else f", about {clock(left_s)} left"
    return f"{step}: {done}{clock(elapsed_s)} so far{rest}"
