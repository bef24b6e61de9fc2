"""The terminal: one console for output, one for progress, and JSON for scripts."""

from __future__ import annotations

import io
import sys
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook
from rich.segment import Segment
from rich.text import Text

from spectune.cli.silence import SILENCE
from spectune.files import json_bytes
from spectune.printable import printable

SLOW_S = 1.0  # seconds without a word after which people wonder
EVERY_S = 2.0  # between two words on how far something is
LINE_ENDS = {"Zl", "Zp"}  # categories of Unicode
UNBOUNDED = 1_000_000  # characters; a pipe has no width, and whoever reads it breaks lines as they like


class _Silenced(RenderHook):
    """Ends what is said while nothing is."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        SILENCE.end()
        return renderables


class _Console(Console):
    """A console that no text can take over, be it in a table: names, notes and logs are other people's words."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render something without what a terminal would obey, letter for letter, so that styles stay in place."""
        if isinstance(renderable, str):
            renderable = _tamed(renderable)
        elif isinstance(renderable, Text):
            renderable = renderable.copy()
            renderable.plain = _tamed(renderable.plain)
        return super().render(renderable, options)

    def on_broken_pipe(self) -> None:
        """Let a reader leave, which is no failure: `| head` ends with the exit code of every command."""
        raise BrokenPipeError


def _tamed(text: str) -> str:
    return "".join(letter if _harmless(letter) else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _harmless(letter: str) -> bool:
    category = unicodedata.category(letter)
    return letter in "\n\t" or not (category.startswith("C") or category in LINE_ENDS)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")  # a terminal without τ shows a question mark
    console = _Console(stderr=stderr, highlight=False, emoji=False)  # NCCL's allreduce:ring: is none
    console.push_render_hook(_Silenced())
    if not console.is_terminal:
        console.width, console.soft_wrap = UNBOUNDED, True
    return console


OUT = _console(stderr=False)
PROGRESS = _console(stderr=True)


@contextmanager
def told_when_slow(note: str) -> Iterator[None]:
    """Print a note on standard error if what is done within takes more than a second."""
    timer = threading.Timer(SLOW_S, lambda: PROGRESS.print(note, markup=False))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def busy(note: str) -> Iterator[None]:
    """Say what is being done, which takes long: beside a spinner on a terminal, elsewhere in a line before it."""
    if PROGRESS.is_terminal:
        with PROGRESS.status(note):
            yield
    else:
        PROGRESS.print(note, markup=False)
        yield


class TimeLeft:
    """Prints how much of several alike things is done and how long the rest may take, now and then."""

    def __init__(self, total: int, what: str, every_s: float = EVERY_S) -> None:
        """Begin now; `what` is what is done of them, as in `prompts answered`."""
        self._total, self._what, self._every_s = total, what, every_s
        self._began = self._last = time.monotonic()

    def __call__(self, done: int) -> None:
        """Take it that so many are done."""
        now = time.monotonic()
        if done >= self._total or now - self._last < self._every_s:
            return
        self._last = now
        left_s = (now - self._began) / done * (self._total - done)
        PROGRESS.print(f"{done} of {self._total} {self._what}, about {clock(left_s)} left", markup=False)


def print_json(value: Any) -> None:
    """Print `value` as indented JSON on standard output."""
    SILENCE.end()
    sys.stdout.write(json_bytes(value).decode())


def print_line(text: str) -> None:
    """Print a line on standard output as it is, nothing in it that a terminal would obey."""
    OUT.print(printable(text), markup=False, soft_wrap=True)


def print_simulated() -> None:
    """Print what has to be known of every figure below it."""
    OUT.print("SIMULATED: no figure here was measured on a real engine", style="bold yellow")


def row_of(widths: Sequence[int], *cells: str) -> str:
    """Return a row of a table of fixed columns, each cell at the right of its own."""
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def clock(seconds: float) -> str:
    """Return a duration as people read it: `48 s`, `7 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
