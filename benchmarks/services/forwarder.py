"""A TCP forwarder that can be cut, as a network is: one client loses the server while others keep it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any

from benchmarks.services.daemon import free_port


class Forwarder:
    """Forwards a port of its own to another one of this machine, in a thread of its own."""

    def __init__(self, to: int) -> None:
        self.port, self._to = free_port(), to
        self._connections: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.mend()

    def cut(self) -> None:
        """Reset every connection and refuse new ones."""
        self._run(self._cut())

    def mend(self) -> None:
        """Accept connections again."""
        self._run(self._listen())

    def close(self) -> None:
        """Cut it for good."""
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._connections:
            writer.transport.abort()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, far_writer}
        self._connections |= ends
        try:
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            for end in ends:
                end.transport.abort()
            self._connections -= ends


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(1 << 16):
            writer.write(chunk)
            await writer.drain()
    writer.transport.abort()  # the other direction ends with it
