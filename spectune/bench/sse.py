"""Server-sent events, as far as streaming engines use them."""

from __future__ import annotations

DONE = b"[DONE]"


class EventParser:
    r"""Cuts a byte stream into the data of its events, wherever the network happened to cut it.

    An event ends at an empty line; `data:` lines of one event are joined by a newline; other fields and comments are
    ignored (WHATWG HTML, section 9.2.6). Lines end in LF or CRLF; a lone CR, which no engine sends, is content.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, received: bytes) -> list[bytes]:
        """The data of every event that these bytes completed, in order."""
        *lines, self._rest = (self._rest + received).split(b"\n")
        events: list[bytes] = []
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
        return events

    @property
    def unfinished(self) -> bool:
        """Whether the bytes so far end in the middle of an event."""
        return bool(self._rest.strip() or self._data)
