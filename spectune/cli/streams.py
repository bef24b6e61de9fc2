"""The standard streams: there whatever the caller closed, and safe to print somebody else's words on."""

from __future__ import annotations

import os
import sys

from spectune.engines.sglang.printable import printable


def open_standard_streams() -> None:
    """Open those that the caller closed (`<&-`, `>&-`), so that no file of ours is taken for one of them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def print_error(error: Exception) -> None:
    """Print what went wrong on standard error; names of files may hold what a terminal would obey."""
    text = "\n".join(printable(line) for line in str(error).split("\n"))
    print(f"spectune: {text}", file=sys.stderr)
