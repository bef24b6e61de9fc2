"""Server-sent events that leave at the moment the scheduler hands them over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import orjson
from aiohttp import HttpVersion11, web

DONE = b"data: [DONE]\n\n"
FULL = 2**20  # bytes that wait for a client too slow to take them; each chunk repeats the last, so it misses none


class EventStream:
    """The stream of one HTTP request: one answer, or several of a list.

    After the first chunk the scheduler writes straight to the transport: waking a task for each chunk would cost more
    than a cycle lasts at high concurrency.

    Attributes:
        response: What aiohttp sends.
    """

    def __init__(self, request: web.Request, answers: int) -> None:
        self._request = request
        self._left = answers
        self._done = asyncio.Event()
        self._lost = False
        self._head: list[bytes] = []  # until the head of the response has left with the first chunk
        self._begun = asyncio.Event()
        self._opened = False
        self._chunked = request.version >= HttpVersion11  # before, the end of the connection ends the answer
        self.response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        if self._chunked:
            self.response.enable_chunked_encoding()

    @classmethod
    async def refuse(cls, request: web.Request, message: str) -> web.StreamResponse:
        """Say inside a stream what is wrong with the request, as SGLang does."""
        stream = cls(request, 0)
        error = {"message": message, "type": "invalid_request_error", "code": 400, "retryable": False}
        await stream.response.prepare(request)
        await stream.response.write(b"data: " + orjson.dumps({"error": error}) + b"\n\n" + DONE)
        await stream.response.write_eof()
        return stream.response

    def sink(self, index: int | None) -> Callable[[bytes, bool], None]:
        """Return what takes the chunks of one answer; `index` is its place in a list."""
        mark = b"" if index is None else b'"index":%d,' % index

        def take(payload: bytes, last: bool) -> None:
            self._write(b"data: {" + mark + payload[1:] + b"\n\n", last=last)
            if last:
                self._left -= 1
                if self._left == 0:
                    self._done.set()

        return take

    async def send(self) -> None:
        """Send the answers from the first chunk to the last.

        Raises:
            ConnectionResetError: The client has gone.
        """
        await self.response.prepare(self._request)
        await self._begun.wait()
        self._opened = True
        await self.response.write(b"".join(self._head))
        await self._done.wait()
        if self._lost:
            raise ConnectionResetError("the connection was lost in mid-stream")
        await self.response.write(DONE)
        await self.response.write_eof()

    def _write(self, event: bytes, *, last: bool) -> None:
        if not self._opened:
            self._head.append(event)
            self._begun.set()
            return
        transport = self._request.transport
        if transport is None or transport.is_closing():
            self._lost = True
            self._done.set()
            return
        if last or transport.get_write_buffer_size() < FULL:
            transport.write(b"%x\r\n%b\r\n" % (len(event), event) if self._chunked else event)
