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

EVERY_S = 15.0  # between two lines
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
    """What is going on, in a line at the beginning and one every few seconds."""

    def __init__(self, console: Console, first: str, every_s: float = EVERY_S) -> None:
        self._console, self._every_s = console, every_s
        self._step = first
        self._share: float | None = None
        self._began = time.monotonic()
        self._known: tuple[float, float] | None = None  # share at the first line that knew one, and when that was
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
            now, step, share, left_s = time.monotonic(), self._step, self._share, None
            if share is not None:  # what an earlier installation had done is told at once, and is no pace
                known, since = self._known = self._known or (share, now)
                left_s = left(share - known, 1.0 - share, now - since)
            self._console.print(standing(step, share, now - self._began, left_s), markup=False)


def left(done: float, to_come: float, elapsed_s: float) -> float | None:
    """Return the seconds that the rest takes at the pace so far; None while too little is done to know one.

    Args:
        done: Share that was done in the time.
        to_come: Share that is left.
        elapsed_s: The time, in seconds.
    """
    return None if done < ENOUGH else elapsed_s * to_come / done


def standing(step: str, share: float | None, elapsed_s: float, left_s: float | None) -> str:
    """Return how far it is, in a line."""
    done = "" if share is None else f"{share:.0%} done, "
    rest = "" if left_s is None else f", about {clock(left_s)} left"
    return f"{step}: {done}{clock(elapsed_s)} so far{rest}"
