"""What a command's end says to whoever ran it."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended.

    Attributes:
        DONE: It did what was asked.
        NO: It did, and the answer is no, or there is none: a study without an answer, a launch that no longer holds,
            is refused, or would fail.
        BAD_INPUT: Something that the user can mend is in the way.
        INTERRUPTED: Ctrl-C, or SIGTERM.
    """

    DONE = 0
    NO = 1
    BAD_INPUT = 2
    INTERRUPTED = 130
