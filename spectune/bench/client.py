"""A streaming client of SGLang's `/generate`: every request becomes a record, whatever happens to it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Self

import orjson

from spectune.bench.connection import Connections
from spectune.bench.exchange import Exchange
from spectune.bench.prompts import TokenizedPrompt
from spectune.bench.sse import DONE, EventParser

_ERROR_BYTES = 2000
_BEGINNING_BYTES = 60
_PATIENCE_STEP = 0.05  # moving the deadline at every chunk costs more than parsing it


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the engine generates.

    Attributes:
        output_tokens: Upper limit per request; a prompt may carry its own.
        temperature: 0 is greedy.
        ignore_eos: Generate past the natural end, which flatters acceptance; off unless asked for.
    """

    output_tokens: int
    temperature: float = 0.0
    ignore_eos: bool = False


class GenerateClient:
    """Connections to one server; an async context manager."""

    def __init__(
        self, base_url: str, *, inactivity_s: float = 120.0, connect_s: float = 10.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Describe the server.

        Args:
            base_url: `http://host:port`.
            inactivity_s: A request that sees no new token for so long has failed.
            connect_s: Time to establish a connection.
            headers: What every request carries.
        """
        self.base_url = base_url.rstrip("/")
        self.inactivity_s = inactivity_s
        self._connections = Connections(self.base_url, connect_s, headers or {})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connections.close()

    async def generate(
        self,
        exchange: Exchange,
        sampling: Sampling,
        *,
        on_tokens: Callable[[float, int], None] | None = None,
    ) -> None:
        """Send one request and fill its exchange; nothing but cancellation leaves this method as an exception.

        Args:
            exchange: Takes up what happens; its record can be asked for at any time.
            sampling: How to generate.
            on_tokens: Told (seconds since the level's start, new tokens) for every chunk.
        """
        try:
            async with asyncio.timeout_at(self._deadline()) as patience:
                answer = _Answer(exchange, on_tokens, lambda: patience.reschedule(self._deadline()), self.inactivity_s)
                asked = exchange.prompt.prompt.output_tokens or sampling.output_tokens
                body = _body(exchange.prompt, sampling, asked)
                exchange.sent(asked)
                answer.complete(await self._connections.post("/generate", body, answer))
        except TimeoutError:
            exchange.fail(f"no new token for {self.inactivity_s:g} s")
        except (OSError, ValueError) as error:
            exchange.fail(f"{type(error).__name__}: {error}")
        finally:
            exchange.end()

    async def flush_cache(self, *, timeout_s: float = 30.0, pause_s: float = 0.05) -> bool:
        """Empty the prefix cache, which the engine refuses (400) until it is idle.

        Args:
            timeout_s: How long to go on asking.
            pause_s: Time between two attempts.

        Returns:
            Whether the engine agreed in time.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            # An engine too busy to answer is asked again until the deadline.
            with contextlib.suppress(OSError, ValueError):
                async with asyncio.timeout(max(timeout_s, 1.0)):
                    if await self._connections.post("/flush_cache", b"", _Unread()) == 200:
                        return True
            if time.monotonic() + pause_s > deadline:
                return False
            await asyncio.sleep(pause_s)

    def _deadline(self) -> float:
        """In the loop's time; late by the step, so that it never comes early."""
        return asyncio.get_running_loop().time() + self.inactivity_s * (1.0 + _PATIENCE_STEP)


class _Answer:
    """Takes up the answer to one request."""

    def __init__(
        self,
        exchange: Exchange,
        on_tokens: Callable[[float, int], None] | None,
        renew: Callable[[], None],
        inactivity_s: float,
    ) -> None:
        self._exchange, self._on_tokens, self._renew = exchange, on_tokens, renew
        self._step_s = _PATIENCE_STEP * inactivity_s
        self._renewed_s = exchange.last_s
        self._events, self._refusal = EventParser(), b""
        self._beginning, self._streamed = b"", False

    def receive(self, at_s: float, status: int, data: bytes) -> bool:
        """Take up a piece of the stream, or of the reason why there is none."""
        if status != 200:
            self._refusal = (self._refusal + data)[:_ERROR_BYTES]
            return len(self._refusal) < _ERROR_BYTES
        exchange = self._exchange
        self._beginning = self._beginning or data[:_BEGINNING_BYTES]
        for event in self._events.feed(data):
            self._streamed = True
            if event == DONE:
                exchange.done()
                continue
            new = exchange.event(event, at_s)
            if new:
                if exchange.last_s - self._renewed_s > self._step_s:
                    self._renewed_s = exchange.last_s
                    self._renew()
                if self._on_tokens is not None:
                    self._on_tokens(exchange.last_s, new)
        return exchange.error is None  # what is wrong is not read on: the engine drops the request

    def complete(self, status: int) -> None:
        """The answer has ended."""
        if status != 200:
            text = self._refusal.decode("utf-8", "replace").strip()
            self._exchange.fail(f"HTTP {status}: {text or _reason(status)}")
        elif self._beginning and not self._streamed:
            self._exchange.fail(f"the server's answer is no stream of events: {self._beginning!r}")
        else:
            self._exchange.closed(in_event=self._events.unfinished)


class _Unread:
    """Takes an answer of which only the status matters."""

    def receive(self, _at_s: float, _status: int, _data: bytes) -> bool:
        """Go on."""
        return True


def _body(prompt: TokenizedPrompt, sampling: Sampling, asked: int) -> bytes:
    return orjson.dumps(
        {
            "input_ids": prompt.input_ids,
            "sampling_params": {
                "temperature": sampling.temperature,
                "max_new_tokens": asked,
                "ignore_eos": sampling.ignore_eos,
            },
            "stream": True,
        }
    )


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no text"
