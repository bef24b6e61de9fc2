"""What the list of processes shows of this one: its command, without the passwords of URLs in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import islice

from spectune.cli.program import STORAGE_VARIABLE, TORCH_INDEX_VARIABLE
from spectune.withheld import secret_value

VARIABLES: Mapping[str, str] = {"--storage": STORAGE_VARIABLE, "--torch-index": TORCH_INDEX_VARIABLE}
"""Option → the variable that may stand for it."""


def hide_passwords() -> None:
    """Start this very process anew where its command holds a password, which is in its environment from then on."""
    command, moved = without_passwords(sys.orig_argv)
    if moved:
        os.execve(sys.executable, [sys.executable, *command[1:]], {**os.environ, **moved})  # noqa: S606 (our own)


def without_passwords(command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words of a command without the options that hold a password, and the variables that replace them."""
    kept: list[str] = []
    moved: dict[str, str] = {}
    words = iter(command)
    for word in words:
        option, joined, value = word.partition("=")
        given = [word]
        if option in VARIABLES and not joined:
            given += islice(words, 1)
            value = given[-1]
        if option in VARIABLES and secret_value(value):
            moved[VARIABLES[option]] = value
        else:
            kept += given
    return kept, moved
