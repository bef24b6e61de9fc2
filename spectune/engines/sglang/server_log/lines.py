"""From bytes of any kind to the messages of an engine, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

import orjson

LONGEST_LINE = 1 << 18
"""Bytes of a line that are read; an argument line has about 20,000."""

WHOLE, NUMBER = r"\d{1,15}", r"-?\d{1,15}(?:\.\d{1,15})?"
"""What a message says of a quantity; longer digits are damage."""

MEMORY = re.compile(rf"mem usage=({NUMBER})")
"""GB that loading weights or capturing graphs has taken."""

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d+)?((?: [A-Za-z_]+\d+)*)\] ?")


@dataclass(frozen=True, slots=True)
class Message:
    """One line of a log, as the engine wrote it.

    Attributes:
        stamp: Its time stamp as written; empty without one.
        rank: Prefix of the process that wrote it, such as `TP0`.
        text: The rest.
    """

    stamp: str
    rank: str
    text: str

    @property
    def time_s(self) -> float | None:
        """Seconds since the epoch, in this machine's time zone."""
        try:
            return datetime.fromisoformat(self.stamp).astimezone().timestamp()
        except (ValueError, OverflowError, OSError):
            return None


def raw_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a binary file; of a line that never ends only its beginning."""
    while line := file.readline(LONGEST_LINE):
        yield line
        while not line.endswith(b"\n") and len(line) == LONGEST_LINE:
            line = file.readline(LONGEST_LINE)  # the rest of it is skipped


def messages(raw: bytes) -> Iterator[Message]:
    """Yield the messages of one raw line: containers' wrapping and colours removed, progress bars separated."""
    text = _unwrapped(raw)
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    for part in text.split("\r"):
        stamp = _STAMP.search(part)
        if stamp is not None:  # what precedes it is a container's prefix or the rest of a progress bar
            yield Message(stamp.group(1), stamp.group(2).strip(), part[stamp.end() :].rstrip())
        elif part.strip():
            yield Message("", "", part.strip())


def _unwrapped(raw: bytes) -> str:
    """The text of a line; of a JSON-wrapped one (docker's json-file) that of its message."""
    if raw.startswith(b"{"):
        try:
            wrapped = orjson.loads(raw)
        except orjson.JSONDecodeError:
            wrapped = None
        if isinstance(wrapped, dict):
            inner = next((wrapped[key] for key in ("log", "message", "msg") if isinstance(wrapped.get(key), str)), None)
            if inner is not None:
                return str(inner)
    return raw.decode("utf-8", "replace")
