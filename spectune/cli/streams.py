"""The standard streams: there whatever the caller closed, and safe to print somebody else's words on."""

from __future__ import annotations

import io
import os
import sys

from spectune.cli.silence import SILENCE
from spectune.printable import printable


class Lasting(io.TextIOWrapper):
    """A stream for what is only told: where it can be written no more, the words are lost and the work goes on.

    The terminal was closed, the reader of a pipe has left, the disk of a log is full.
    """

    def write(self, text: str, /) -> int:
        """Write it, or nothing from then on."""
        try:
            return super().write(text)
        except OSError:
            self._give_up()
            return len(text)

    def flush(self) -> None:
        """Write what is kept back, or nothing from then on."""
        try:
            super().flush()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())  # for whoever else writes there, too
        os.close(nowhere)


def open_standard_streams() -> None:
    """Open those that the caller closed (`<&-`, `>&-`), so that no file of ours is taken for one of them.

    Standard error is for words beside the work, and lets nobody end it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    encoding = sys.stderr.encoding if sys.stderr else "utf-8"
    sys.stderr = Lasting(open(2, "wb", closefd=False), encoding, "backslashreplace", line_buffering=True)  # noqa: SIM115


def print_error(error: Exception) -> None:
    """Print what went wrong on standard error; names of files may hold what a terminal would obey."""
    SILENCE.end()
    text = "\n".join(printable(line) for line in str(error).split("\n"))
    print(f"spectune: {text}", file=sys.stderr)
