"""A server that streams `/generate` as SGLang does, or as badly as a test asks for; it lives in the test's own loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from spectune.bench.client import GenerateClient
from spectune.bench.prompts import Prompt, TokenizedPrompt

Answer = Callable[["FakeEngine", web.Request, dict], Awaitable[web.StreamResponse]]


def tokenized(number: int, prompt_class: str = "code") -> TokenizedPrompt:
    return TokenizedPrompt(Prompt(f"p{number}", prompt_class, text=f"prompt {number}"), [number, 7, 8])


def endless():
    number = 0
    while True:
        yield tokenized(number, ("code", "chat", "math")[number % 3])
        number += 1


def chunk(tokens: int, *, finish=None, text="", **meta) -> bytes:
    counted = {"id": "x", "finish_reason": finish, "prompt_tokens": 3, "cached_tokens": 1, "completion_tokens": tokens}
    content = {"text": text, "output_ids": list(range(tokens)), "meta_info": counted | meta}
    return b"data: " + json.dumps(content).encode() + b"\n\n"


def counters(cycles: int, accepted: int) -> dict:
    histogram = [0] * (accepted + 1)
    histogram[accepted] = cycles
    return {
        "spec_verify_ct": cycles,
        "spec_num_correct_drafts": cycles * accepted,
        "spec_correct_drafts_histogram": histogram,
    }


@dataclass
class FakeEngine:
    """Counts what it is asked; `answer` decides how it replies."""

    answer: Answer | None = None
    cycles: int = 10
    cycle_s: float = 0.004
    accepted: int = 2
    seen: list[tuple[int, ...]] = field(default_factory=list)
    bodies: list[dict] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    dropped: int = 0
    busy_flushes: int = 0
    flushes: int = 0

    async def generate(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.seen.append(tuple(body["input_ids"]))
        self.bodies.append(body)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await (self.answer or FakeEngine.stream)(self, request, body)
        except (ConnectionResetError, asyncio.CancelledError):
            self.dropped += 1
            raise
        finally:
            self.in_flight -= 1

    async def stream(self, request: web.Request, body: dict) -> web.StreamResponse:
        response = await open_stream(request)
        for cycle in range(self.cycles + 1):
            last = cycle == self.cycles
            finish = {"type": "length", "length": 1} if last else None
            await response.write(
                chunk(1 + cycle * (self.accepted + 1), finish=finish, **counters(cycle, self.accepted))
            )
            await asyncio.sleep(0 if last else self.cycle_s)
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def flush(self, _request: web.Request) -> web.Response:
        self.flushes += 1
        return web.Response(status=400 if self.flushes <= self.busy_flushes else 200)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (what is waited for happens in aiohttp's server)
            await asyncio.sleep(0.01)


async def open_stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    return response


@asynccontextmanager
async def serving(engine: FakeEngine, **client) -> AsyncIterator[GenerateClient]:
    app = web.Application()
    app.router.add_post("/generate", engine.generate)
    app.router.add_post("/flush_cache", engine.flush)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with GenerateClient(f"http://127.0.0.1:{port}", **client) as connected:
            yield connected
    finally:
        await runner.cleanup()
