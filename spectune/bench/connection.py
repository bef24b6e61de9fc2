"""HTTP/1.1 connections to an engine that stamp what arrives before anything else is done with it.

Chunks of many answers arrive at once. All of them are stamped before the first is parsed, and none wakes a task: waking
and parsing is what a client's own delay and its CPU time are made of.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol
from urllib.parse import urlsplit

import httptools

_KEEPALIVE_S = 2.0  # below the 5 s after which SGLang's HTTP server closes an idle connection
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Receiver(Protocol):
    """What takes up an answer while it arrives; raising from it is a fault of the client."""

    def receive(self, at_s: float, status: int, data: bytes) -> bool:
        """Take a piece of the body.

        Args:
            at_s: `time.monotonic()` when it arrived.
            status: HTTP status of the answer.
            data: The piece.

        Returns:
            Whether to go on; otherwise the connection is closed.
        """
        ...


class Connection(asyncio.Protocol):
    """One connection, one answer at a time.

    Attributes:
        open: Whether it can be asked.
        heard: Whether anything of the last answer has arrived.
        idle_since_s: When the last answer was complete.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._receiver: Receiver | None = None
        self._answered: asyncio.Future[int] | None = None
        self._arrived: list[tuple[float, bytes]] = []
        self._at_s, self._wanted = 0.0, True
        self.idle_since_s = 0.0
        self.open = self.heard = False

    async def ask(self, request: bytes, receiver: Receiver) -> int:
        """Send a request and let the receiver take its answer; returns the HTTP status once it is complete.

        Raises:
            ConnectionError: The connection ended in the middle of the answer.
            ValueError: What arrived is not HTTP.
        """
        assert self._transport is not None, "an established connection"
        self.heard = False
        self._receiver, self._answered = receiver, asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._answered
        finally:
            if not self._answered.done() or self._answered.cancelled():
                self.close()  # the engine drops a request whose client has gone
            self._receiver = self._answered = None

    def close(self) -> None:
        """End the connection."""
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio has a connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.open = transport, True

    def data_received(self, data: bytes) -> None:
        """Asyncio has read some bytes: they are stamped, and parsed once those of all other connections are, too."""
        self._arrived.append((time.monotonic(), data))
        self.heard = True
        if len(self._arrived) == 1:
            asyncio.get_running_loop().call_soon(self._parse)

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio has no connection any more."""
        self._parse()
        self.open = False
        self._ends(exc if isinstance(exc, OSError) else ConnectionError("the server closed the connection"))

    def on_body(self, body: bytes) -> None:
        """The parser has found a piece of the body."""
        if self._receiver is not None and self._wanted:
            self._wanted = self._receiver.receive(self._at_s, self._parser.get_status_code(), body)
            if not self._wanted:
                self._ends(None)

    def on_message_complete(self) -> None:
        """The parser has found the end of an answer."""
        status = self._parser.get_status_code()
        if status < 200:  # the answer itself is still to come
            return
        self.open = self.open and self._parser.should_keep_alive()
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(status)
            self.idle_since_s = self._at_s
        if not self.open:
            self.close()

    def _parse(self) -> None:
        """Parse what has arrived; errors of the receiver are those of `ask`."""
        arrived, self._arrived = self._arrived, []
        try:
            for self._at_s, data in arrived:
                self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as fault:
            self._ends(fault.__context__ or fault)
        except httptools.HttpParserError as error:
            self._ends(ValueError(f"the answer is not HTTP: {error}"))

    def _ends(self, error: BaseException | None) -> None:
        """Close in the middle of an answer: with an error, or because no more of it is wanted."""
        if self._answered is not None and not self._answered.done():
            if error is None:
                self._answered.set_result(self._parser.get_status_code())
            else:
                self._answered.set_exception(error)
        self.close()


class Connections:
    """The connections to one server, kept open between requests.

    Proxies of the environment are no matter: a server under test is reached directly or not at all.
    """

    def __init__(self, base_url: str, connect_s: float, headers: Mapping[str, str] = _NO_HEADERS) -> None:
        """Describe the server.

        Args:
            base_url: `http://host:port`.
            connect_s: Time to establish a connection.
            headers: Of every request.
        """
        url = urlsplit(base_url)
        assert url.scheme == "http", base_url
        assert url.hostname, base_url
        assert url.port, base_url
        self._host, self._port, self._path, self._connect_s = url.hostname, url.port, url.path.rstrip("/"), connect_s
        lines = {"Host": url.netloc, "Content-Type": "application/json", **headers}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._all: set[Connection] = set()
        self._idle: list[Connection] = []

    async def post(self, path: str, body: bytes, receiver: Receiver) -> int:
        """Send a POST request as soon as there is a connection, see `Connection.ask`.

        Raises:
            OSError: There is no connection, or it ended.
            ValueError: What arrived is not HTTP.
        """
        head = f"POST {self._path}{path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        request = head.encode("latin-1") + body
        if (kept := self._kept()) is not None:
            try:
                return await self._ask(kept, request, receiver)
            except ConnectionError:
                # A server may close an idle connection at any time, and a request that crosses that is no failure of
                # its own (RFC 9112, section 9.3.1): it is sent once more.
                if kept.heard:
                    raise
        return await self._ask(await self._connect(), request, receiver)

    async def _ask(self, connection: Connection, request: bytes, receiver: Receiver) -> int:
        try:
            return await connection.ask(request, receiver)
        finally:
            if connection.open:
                self._idle.append(connection)
            else:
                self._all.discard(connection)

    def close(self) -> None:
        """End all connections."""
        for connection in self._all:
            connection.close()
        self._all.clear()
        self._idle.clear()

    def _kept(self) -> Connection | None:
        """Return the connection used last, if the server cannot have given it up yet."""
        while self._idle:
            connection = self._idle.pop()
            if connection.open and time.monotonic() - connection.idle_since_s < _KEEPALIVE_S:
                return connection
            connection.close()
            self._all.discard(connection)
        return None

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_s):
                _, connection = await loop.create_connection(Connection, self._host, self._port)
        except TimeoutError:
            raise ConnectionError(f"no connection to {self._host}:{self._port} in {self._connect_s:g} s") from None
        self._all.add(connection)
        return connection
