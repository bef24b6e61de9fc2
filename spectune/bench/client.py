"""A streaming client of SGLang's `/generate`: every request becomes a record, whatever happens to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import aiohttp
import orjson

from spectune.bench.exchange import Exchange
from spectune.bench.prompts import TokenizedPrompt
from spectune.bench.sse import DONE, EventParser

_ERROR_BYTES = 2000
_READ_BYTES = 1 << 18
_KEEPALIVE_S = 2.0  # below the 5 s after which SGLang's HTTP server closes an idle connection
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
    """Connections to one server; an async context manager.

    Proxies of the environment are bypassed: a server under test is reached directly or not at all.
    """

    def __init__(self, base_url: str, *, inactivity_s: float = 120.0, connect_s: float = 10.0) -> None:
        """Describe the server.

        Args:
            base_url: `http://host:port`.
            inactivity_s: A request that sees no new token for so long has failed.
            connect_s: Time to establish a connection.
        """
        self.base_url = base_url.rstrip("/")
        self.inactivity_s = inactivity_s
        self._connect_s = connect_s
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_S),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_s),
            read_bufsize=_READ_BYTES,
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._opened().close()

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
                await self._stream(exchange, sampling, on_tokens, patience)
        except (aiohttp.ClientError, ValueError) as error:
            exchange.fail(f"{type(error).__name__}: {error}")
        except TimeoutError:
            exchange.fail(f"no new token for {self.inactivity_s:g} s")
        except OSError as error:
            exchange.fail(f"{type(error).__name__}: {error}")
        finally:
            exchange.end()

    async def _stream(
        self,
        exchange: Exchange,
        sampling: Sampling,
        on_tokens: Callable[[float, int], None] | None,
        patience: asyncio.Timeout,
    ) -> None:
        body = _body(exchange.prompt, sampling)
        exchange.sent()
        async with self._opened().post(
            f"{self.base_url}/generate", data=body, headers={"Content-Type": "application/json"}
        ) as response:
            if response.status != 200:
                exchange.fail(f"HTTP {response.status}: {await _error_text(response)}")
                return
            parser, renewed_s = EventParser(), exchange.last_s
            async for received in response.content.iter_any():
                for event in parser.feed(received):
                    if event == DONE:
                        exchange.done()
                        continue
                    new = exchange.event(event)
                    if new:
                        if exchange.last_s - renewed_s > _PATIENCE_STEP * self.inactivity_s:
                            renewed_s = exchange.last_s
                            patience.reschedule(self._deadline())
                        if on_tokens is not None:
                            on_tokens(exchange.last_s, new)
                if exchange.error is not None:
                    # Leaving the context closes the connection, and the engine drops the request.
                    return
            exchange.closed(in_event=parser.unfinished)

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
            try:
                async with self._opened().post(
                    f"{self.base_url}/flush_cache", timeout=aiohttp.ClientTimeout(total=max(timeout_s, 1.0))
                ) as response:
                    if response.status == 200:
                        return True
            except (aiohttp.ClientError, OSError, TimeoutError):
                pass  # an engine too busy to answer is asked again until the deadline
            if time.monotonic() + pause_s > deadline:
                return False
            await asyncio.sleep(pause_s)

    def _deadline(self) -> float:
        """In the loop's time; late by the step, so that it never comes early."""
        return asyncio.get_running_loop().time() + self.inactivity_s * (1.0 + _PATIENCE_STEP)

    def _opened(self) -> aiohttp.ClientSession:
        assert self._session is not None, "the client is used inside `async with`"
        return self._session


def _body(prompt: TokenizedPrompt, sampling: Sampling) -> bytes:
    return orjson.dumps(
        {
            "input_ids": prompt.input_ids,
            "sampling_params": {
                "temperature": sampling.temperature,
                "max_new_tokens": prompt.prompt.output_tokens or sampling.output_tokens,
                "ignore_eos": sampling.ignore_eos,
            },
            "stream": True,
        }
    )


async def _error_text(response: aiohttp.ClientResponse) -> str:
    text = (await response.content.read(_ERROR_BYTES)).decode("utf-8", "replace").strip()
    return text or str(response.reason or "no text")
