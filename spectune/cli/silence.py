"""A word to whoever sits at a terminal, while a command has nothing to say yet: it loads what it needs, or reads."""

from __future__ import annotations

import sys
import threading

QUIET_S = 0.5  # seconds without a word after which people wonder
NOTE = "one moment ..."
ERASE = "\r\x1b[K"


class Silence:
    """The time until a command's first word; only a terminal is told of it, and the note goes when the word comes."""

    def __init__(self, quiet_s: float = QUIET_S) -> None:
        self._timer = threading.Timer(quiet_s, self._tell)
        self._timer.daemon = True
        self._told, self._over = False, False
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Count from now."""
        if sys.stderr.isatty():
            self._timer.start()

    def end(self) -> None:
        """Take the note away, if there is one: something is about to be printed, or the command is done."""
        if self._over:
            return
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._told:
                sys.stderr.write(ERASE)
                sys.stderr.flush()

    def _tell(self) -> None:
        with self._lock:
            if not self._over:
                self._told = True
                sys.stderr.write(NOTE)
                sys.stderr.flush()


SILENCE = Silence()
"""Of this process's command."""
