"""The log of the simulated engine, line by line in SGLang's format (facts, section 4.4)."""

from __future__ import annotations

import sys
import time

FLOOD_LINES = 20_000


class EngineLog:
    """Writes to standard error, where SGLang's log goes.

    Attributes:
        ranks: Workers of the engine; with several, their lines carry the rank.
    """

    def __init__(self, ranks: int = 1) -> None:
        self.ranks = ranks

    def launcher(self, message: str) -> None:
        """Write a line of the launcher."""
        self._write("", message)

    def scheduler(self, message: str) -> None:
        """Write a line of rank 0."""
        self._write(" TP0" if self.ranks > 1 else "", message)

    def access(self, peer: str, method: str, path: str, status: int, reason: str) -> None:
        """Write what the HTTP server says of a request."""
        self.launcher(f'INFO:     {peer} - "{method} {path} HTTP/1.1" {status} {reason}')

    def flood(self) -> None:
        """Write so much that nobody may read all of it."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        line = f"[{stamp}] simulated log flood: " + "x" * 160 + "\n"
        for _ in range(FLOOD_LINES):
            sys.stderr.write(line)
        sys.stderr.flush()

    def _write(self, prefix: str, message: str) -> None:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        sys.stderr.write(f"[{stamp}{prefix}] {message}\n")
        sys.stderr.flush()
