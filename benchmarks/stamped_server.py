"""A server that streams as SGLang does and keeps the time of all it writes: `python -m benchmarks.stamped_server PORT`.

All streams get their next chunk at the same moments, one cycle apart, as from a batch that is decoded together. Times
are the machine's monotonic clock, the one clients read too; GET /stamps tells them per request.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass, field

import orjson
from aiohttp import web

CYCLE_S = 0.02
PREPARED_S = 0.005  # before a cycle ends: what answers it arrives right after, and is stamped the sooner
TOKENS_PER_CHUNK = 3
DONE = b"data: [DONE]\n\n"


@dataclass
class Stream:
    """One answer."""

    transport: asyncio.Transport
    prompt_tokens: int
    chunks: int
    received_s: float
    written_s: list[float] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    chunk: bytes = b""  # the next one

    def prepare(self) -> None:
        """Make the next chunk."""
        number = len(self.written_s) + 1
        tokens, last = 1 + (number - 1) * TOKENS_PER_CHUNK, number == self.chunks
        meta = {
            "id": "0123456789abcdef0123456789abcdef",
            "finish_reason": {"type": "length", "length": tokens} if last else None,
            "prompt_tokens": self.prompt_tokens, "weight_version": "default", "num_retractions": 0,
            "reasoning_tokens": 0, "completion_tokens": tokens, "cached_tokens": 0, "spec_accept_rate": 0.66,
            "spec_accept_length": 3.0, "spec_num_correct_drafts": 2 * (number - 1), "spec_verify_ct": number - 1,
            "spec_correct_drafts_histogram": [0, 0, number - 1, 0], "e2e_latency": 1.25,
        }  # fmt: skip
        content = {"text": "word " * tokens, "output_ids": list(range(1000, 1000 + tokens)), "meta_info": meta}
        event = b"data: " + orjson.dumps(content) + b"\n\n"
        self.chunk = b"%x\r\n%b\r\n" % (len(event), event)

    def write(self) -> None:
        """Send the next chunk."""
        self.written_s.append(time.monotonic())
        self.transport.write(self.chunk)
        if len(self.written_s) == self.chunks:
            self.done.set()


class Server:
    """All streams."""

    def __init__(self) -> None:
        self._streams: dict[int, Stream] = {}
        self._open: list[Stream] = []

    async def run(self, port: int) -> None:
        """Serve until killed."""
        app = web.Application()
        app.router.add_post("/generate", self._generate)
        app.router.add_get("/stamps", self._stamps)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        print("ready", flush=True)
        due = time.monotonic()
        while True:
            due = max(due + CYCLE_S, time.monotonic() + PREPARED_S)
            await asyncio.sleep(due - PREPARED_S - time.monotonic())
            ready = list(self._open)
            for stream in ready:
                stream.prepare()
            await asyncio.sleep(due - time.monotonic())
            for stream in ready:
                stream.write()
            self._open = [stream for stream in self._open if not stream.done.is_set()]

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        received_s = time.monotonic()
        body = orjson.loads(await request.read())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b": \n\n")  # the head leaves with the first write
        assert isinstance(request.transport, asyncio.Transport)
        chunks = 1 + (body["sampling_params"]["max_new_tokens"] - 1) // TOKENS_PER_CHUNK
        stream = Stream(request.transport, len(body["input_ids"]), chunks, received_s)
        self._streams[body["input_ids"][0]] = stream
        self._open.append(stream)
        await stream.done.wait()
        await response.write(DONE)
        await response.write_eof()
        return response

    async def _stamps(self, _request: web.Request) -> web.Response:
        stamps = {str(number): [one.received_s, one.written_s] for number, one in self._streams.items()}
        return web.Response(body=orjson.dumps(stamps), content_type="application/json")


if __name__ == "__main__":
    asyncio.run(Server().run(int(sys.argv[1])))
