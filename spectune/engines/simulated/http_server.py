"""The HTTP API of the simulated engine, as far as SGLang's clients use it (facts, section 4.1)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from spectune.engines.address import LOOPBACK
from spectune.engines.simulated.acceptance import KNOWN_CLASSES
from spectune.engines.simulated.authorization import allowed
from spectune.engines.simulated.generation import Generation
from spectune.engines.simulated.information import Information
from spectune.engines.simulated.log import EngineLog
from spectune.engines.simulated.prefix_cache import PrefixCache
from spectune.engines.simulated.requests import Ask, BadBody, BadRequest, Body, parse, read
from spectune.engines.simulated.scheduler import Scheduler
from spectune.engines.simulated.streaming import EventStream

LARGEST_BODY = 256 * 2**20  # bytes
HEALTH_TIMEOUT_S = 20.0
HEALTH_PAUSE_S = 1.0
FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests, the "
    "operation will not be performed.)\n"
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class EngineHttp:
    """The endpoints of one engine.

    Attributes:
        ready: Whether it serves; before, and while it shuts down, `/ready` and `/health` answer 503.
        app: The application to run.
        logger: What the server below it complains to.
    """

    def __init__(
        self, scheduler: Scheduler, information: Information, cache: PrefixCache, log: EngineLog, api_key: str | None
    ) -> None:
        self._api_key = api_key
        self._scheduler, self._information, self._cache, self._log = scheduler, information, cache, log
        self.ready = False
        self.address = (LOOPBACK, 0)
        self._count = 0
        self._open: set[str] = set()
        self._all_answered = asyncio.Event()
        self._classes = (*information.launch.profile.file.acceptance.by_class, *KNOWN_CLASSES)
        self.app = web.Application(client_max_size=LARGEST_BODY, middlewares=[self._logged])
        self.app.add_routes(self._routes())
        self.logger = logging.Logger("http")  # noqa: LOG001 (its own: several engines may live in a process)
        self.logger.addFilter(self._is_own)

    @property
    def open_requests(self) -> list[str]:
        """Ids of the requests that have not been answered to their end."""
        return sorted(self._open)

    async def answered(self) -> None:
        """Wait for the last answer."""
        while self._open:
            await self._all_answered.wait()

    async def generate_once(self, input_ids: list[int], tokens: int) -> None:
        """Let the engine generate for itself: its warm-up and its health checks."""
        generation, done = self._prepared(Ask(input_ids, tokens, f"HEALTH_CHECK_{uuid.uuid4().hex}", None), None)
        self._scheduler.submit(generation)
        try:
            await done.wait()
        finally:
            generation.gone = True

    def _routes(self) -> list[web.RouteDef]:
        get: dict[str, Handler] = {
            "/ready": self._ready,
            "/health": self._health,
            "/health_generate": self._health,
            "/model_info": self._model_info,
            "/get_model_info": self._model_info,
            "/server_info": self._server_info,
            "/get_server_info": self._server_info,
            "/v1/models": self._models,
            "/flush_cache": self._flush,
        }
        routes = [web.get(path, handler, allow_head=False) for path, handler in get.items()]
        return [
            *routes,
            web.post("/flush_cache", self._flush),
            web.post("/generate", self._generate),
            web.put("/generate", self._generate),
        ]

    @web.middleware
    async def _logged(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not allowed(request.method, request.path, request.headers.get("Authorization"), self._api_key):
            handler = _unauthorized
        try:
            response = await handler(request)
        except (web.HTTPNotFound, web.HTTPMethodNotAllowed) as error:
            response = _json({"detail": error.reason}, status=error.status)
        if request.path.startswith("/get_"):
            new = request.path.replace("/get_", "/")
            self._log.launcher(
                f"Endpoint '{request.path}' is deprecated and will be removed in a future version. "
                f"Please use '{new}' instead."
            )
        peer = request.transport.get_extra_info("peername") if request.transport else None
        where = f"{peer[0]}:{peer[1]}" if peer else "-"
        self._log.access(where, request.method, request.path_qs, response.status, response.reason or "")
        return response

    def _is_own(self, record: logging.LogRecord) -> bool:
        """Say of what is no HTTP what SGLang's server says of it; a fault of the engine itself is told whole."""
        others = record.exc_info is not None and isinstance(record.exc_info[1], HttpProcessingError)
        if others:
            self._log.launcher("WARNING:  Invalid HTTP request received.")
        return not others

    async def _ready(self, _request: web.Request) -> web.Response:
        return web.Response(status=200 if self.ready else 503)

    async def _health(self, _request: web.Request) -> web.Response:
        """Generate one token, as each call of SGLang's does."""
        if not self.ready:
            return web.Response(status=503)
        began = asyncio.get_running_loop().time()
        generating = asyncio.create_task(self.generate_once([0], 1))
        await asyncio.sleep(HEALTH_PAUSE_S)
        try:
            async with asyncio.timeout_at(began + HEALTH_TIMEOUT_S):
                await generating
        except TimeoutError:
            self._log.launcher(
                "Health check failed. Server couldn't get a response from detokenizer for last "
                f"{HEALTH_TIMEOUT_S:.0f} seconds."
            )
            return web.Response(status=503)
        return web.Response(status=200)

    async def _model_info(self, _request: web.Request) -> web.Response:
        return _json(self._information.model())

    async def _models(self, _request: web.Request) -> web.Response:
        return _json(self._information.models())

    async def _server_info(self, _request: web.Request) -> web.Response:
        host, port = self.address
        return _json(
            self._information.server(self._scheduler.statistics, self._scheduler.lateness, host=host, port=port)
        )

    async def _flush(self, request: web.Request) -> web.Response:
        """Empty the prefix cache, unless something runs; `timeout` seconds may be waited for that."""
        try:
            patience = float(request.query.get("timeout", 0.0))
        except ValueError:
            return _json(BadBody("timeout must be a number").content, status=400)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._scheduler.emptied.wait(), patience)
        if not self._scheduler.idle:
            self._log.scheduler(
                "Cache not flushed because there are pending requests. "
                f"#queue-req: {len(self._scheduler.waiting)}, #running-req: {len(self._scheduler.running)}"
            )
            return web.Response(status=400, text="Flush cache failed.\n")
        self._cache.flush()
        self._scheduler.statistics.reset_lifetime()
        self._log.scheduler("Cache flushed successfully!")
        return web.Response(text=FLUSHED)

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        try:
            raw = parse(await request.read())
        except BadBody as error:
            return _json(error.content, status=400)
        try:
            body = read(raw, self._information.limits, self._classes)
        except BadRequest as error:
            self._log.launcher(f"[http_server] Error: {error}")
            if raw.get("stream"):
                return await EventStream.refuse(request, str(error))
            return _json({"error": {"message": str(error)}}, status=400)
        first, self._count = self._count, self._count + len(body.asks)
        if self._information.launch.fault("http_500", first) is not None:
            self._scheduler.reach(first)
            return web.Response(status=500, text="Internal Server Error")
        if body.stream:
            return await self._streamed(request, body, first)
        return await self._whole(body, first)

    async def _whole(self, body: Body, first: int) -> web.Response:
        prepared = [self._prepared(ask, first + index) for index, ask in enumerate(body.asks)]
        try:
            for generation, _ in prepared:
                self._scheduler.submit(generation)
            for _, done in prepared:
                await done.wait()
        finally:
            self._leave([generation for generation, _ in prepared])
        failed = next((one.finish for one, _ in prepared if one.finish and one.finish["type"] == "abort"), None)
        if failed is not None:
            return _json({"error": {"message": failed["message"]}}, status=failed["status_code"])
        answers = [generation.answer() for generation, _ in prepared]
        return _json(answers if body.listed else answers[0])

    async def _streamed(self, request: web.Request, body: Body, first: int) -> web.StreamResponse:
        stream = EventStream(request, len(body.asks))
        generations = [
            self._generation(ask, first + index, stream.sink(index if body.listed else None))
            for index, ask in enumerate(body.asks)
        ]
        try:
            for generation in generations:
                self._scheduler.submit(generation)
            await stream.send()
        except ConnectionResetError as error:
            self._log.launcher(f"[http_server] Client disconnected: {error}")
        finally:
            self._leave(generations)
        return stream.response

    def _prepared(self, ask: Ask, number: int | None) -> tuple[Generation, asyncio.Event]:
        """Return a generation whose chunks nobody sees, and the event of its end."""
        done = asyncio.Event()
        return self._generation(ask, number, lambda _, last: done.set() if last else None), done

    def _generation(self, ask: Ask, number: int | None, deliver: Callable[[bytes, bool], None]) -> Generation:
        name = ask.request_id or uuid.uuid4().hex
        if number is not None:
            self._open.add(name)
            self._all_answered.clear()
        return Generation(
            name, ask.input_ids, ask.prompt_class, ask.max_new_tokens, number, deliver, self._information.launch,
            ask.temperature,
        )  # fmt: skip

    def _leave(self, generations: list[Generation]) -> None:
        """Note that nobody waits for these any more, finished or not."""
        for generation in generations:
            generation.gone = True
            self._open.discard(generation.request_id)
        if not self._open:
            self._all_answered.set()


async def _unauthorized(_request: web.Request) -> web.StreamResponse:
    return _json({"error": "Unauthorized"}, status=401)


def _json(content: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")
