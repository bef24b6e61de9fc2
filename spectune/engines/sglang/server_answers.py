"""What a running server says of itself, in a handful of small requests that do not disturb it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from spectune.engines.address import authorization
from spectune.errors import SpectuneError
from spectune.printable import one_line

LARGEST_ANSWER = 16 << 20
"""Bytes of an answer that are read."""

LONGEST_REASON = 200  # characters of what a library says of an answer it cannot read
MOST = 1e15  # of any quantity that a server tells; more of it, or less than nothing, is damage

_PATIENCE = aiohttp.ClientTimeout(total=20, sock_connect=5)
_INFO = ("/server_info", "/get_server_info")  # the second up to 0.5.5
_MODEL = ("/model_info", "/get_model_info")
_LOADS = ("/v1/loads?include=core",)
_SAMPLE = re.compile(r"^(sglang:\w+)(?:\{([^}]*)\})? ([-+.\deE]+|NaN)(?: \d+)?$", re.MULTILINE)
_OTHER_RANK = re.compile(r'\b(?:tp|pp)_rank="[^0"]')


@dataclass(frozen=True, slots=True)
class ServerAnswers:
    """A server's own words.

    Attributes:
        info: `/server_info`, secrets included: never to be shown whole.
        model: `/model_info`; empty where it does not answer.
        loads: `/v1/loads`, one entry a data-parallel rank; empty before about 0.5.10.
        metrics: SGLang's gauges and counters, the samples of all data-parallel ranks; empty where it has none.
    """

    info: Mapping[str, Any]
    model: Mapping[str, Any] = field(default_factory=dict)
    loads: tuple[Mapping[str, Any], ...] = ()
    metrics: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Version and model, as far as they are told."""
        model = self.info.get("model_path") or self.model.get("model_path") or "an unnamed model"
        return f"SGLang {self.info.get('version') or 'of unknown version'} with {model}"

    @property
    def states(self) -> list[Mapping[str, Any]]:
        """The schedulers' states, one a data-parallel rank."""
        states = self.info.get("internal_states")
        return [state for state in states if isinstance(state, Mapping)] if isinstance(states, list) else []

    def each(self, load: str, metric: str) -> tuple[float, ...]:
        """Return a quantity of this moment for each rank, by either name; empty where the server does not say."""
        numbers = (float(one[load]) for one in self.loads if isinstance(one.get(load), int | float))
        return tuple(filter(_possible, numbers)) or self.metrics.get(metric, ())


def base_url_of(url: str) -> str:
    """Return scheme, host and port of an address, without a path, a user or a password.

    Raises:
        SpectuneError: When it is no address of a web server.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise SpectuneError(f"--url must look like http://HOST:PORT, but got {url.rpartition('@')[2][:80]!r}")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + ("" if port is None else f":{port}")


async def ask_server(base_url: str, api_key: str | None) -> ServerAnswers:
    """Ask a server for its arguments and its state.

    Redirects are not followed, and proxies of the environment not used: the key goes to this server only.

    Raises:
        SpectuneError: When it does not answer, wants a key, or is no SGLang.
    """
    try:
        async with aiohttp.ClientSession(headers=authorization(api_key), timeout=_PATIENCE, trust_env=False) as session:
            info = await _first(session, base_url, _INFO)
            if info is None or not ("internal_states" in info or "model_path" in info):
                raise SpectuneError(f"{base_url} is no SGLang server: {await _what_it_is(session, base_url)}")
            model = await _if_told(session, base_url, _MODEL)
            loads = await _if_told(session, base_url, _LOADS)
            metrics = await _get(session, f"{base_url}/metrics") if info.get("enable_metrics") else (0, b"")
    except TimeoutError as error:
        raise SpectuneError(f"{base_url} did not answer within {_PATIENCE.total:g} s") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: a host name that cannot be one
        raise SpectuneError(f"{base_url} cannot be asked: {_plain(error)}") from error
    ranks = loads.get("loads")
    return ServerAnswers(
        info,
        model,
        tuple(rank for rank in ranks if isinstance(rank, dict)) if isinstance(ranks, list) else (),
        parse_metrics(metrics[1].decode("utf-8", "replace")),
    )


def parse_metrics(text: str) -> dict[str, tuple[float, ...]]:
    """Return SGLang's samples of a Prometheus text by name; of tensor and pipeline ranks only the first."""
    found: dict[str, list[float]] = {}
    for name, labels, value in _SAMPLE.findall(text):
        if not _OTHER_RANK.search(labels):
            try:
                number = float(value)
            except ValueError:
                continue
            if _possible(number):
                found.setdefault(name, []).append(number)
    return {name: tuple(values) for name, values in found.items()}


async def _first(session: aiohttp.ClientSession, base_url: str, paths: tuple[str, ...]) -> Mapping[str, Any] | None:
    """The answer of the first path that exists; None when none does."""
    for path in paths:
        status, body = await _get(session, base_url + path)
        if status in (404, 405):
            continue
        return _object(base_url + path, status, body)
    return None


async def _if_told(session: aiohttp.ClientSession, base_url: str, paths: tuple[str, ...]) -> Mapping[str, Any]:
    """The same of what a server may keep to itself; empty then."""
    try:
        return await _first(session, base_url, paths) or {}
    except SpectuneError:
        return {}


async def _get(session: aiohttp.ClientSession, url: str) -> tuple[int, bytes]:
    async with session.get(url, allow_redirects=False) as response:
        body = bytearray()
        async for chunk in response.content.iter_chunked(1 << 16):
            body += chunk
            if len(body) > LARGEST_ANSWER:
                break
        return response.status, bytes(body)


def _possible(quantity: float) -> bool:
    return 0.0 <= quantity <= MOST


def _object(url: str, status: int, body: bytes) -> Mapping[str, Any]:
    if status in (401, 403):
        raise SpectuneError(
            f"{url} wants an API key (HTTP {status}): set SGLANG_API_KEY, or name its variable with --api-key-env"
        )
    if 300 <= status < 400:
        raise SpectuneError(f"{url} redirects elsewhere (HTTP {status}): give the address of the server itself")
    if status != 200:
        raise SpectuneError(f"{url} answered HTTP {status}: {_shown(body)}")
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        kind = "a web page" if body.lstrip()[:1] == b"<" else "no JSON"
        raise SpectuneError(f"{url} answered {kind}, so it is no SGLang server: {_shown(body)}") from None
    if not isinstance(answer, dict):
        raise SpectuneError(f"{url} answered JSON that is no object, so it is no SGLang server: {_shown(body)}")
    return answer


async def _what_it_is(session: aiohttp.ClientSession, base_url: str) -> str:
    """Name what answers there, by the list of models that OpenAI-compatible servers have."""
    status, body = await _get(session, f"{base_url}/v1/models")
    try:
        owners = {str(model.get("owned_by")) for model in orjson.loads(body)["data"]} if status == 200 else set()
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        owners = set()
    if owners:
        return f"its models are owned by {', '.join(sorted(owners))[:80]!r}, and it has no /server_info"
    return "it has no /server_info"


def _plain(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientResponseError):
        return "what it answers is not HTTP"
    reason = getattr(error, "os_error", None) or error
    words = str(getattr(reason, "strerror", None) or reason or type(error).__name__)
    return one_line(words, LONGEST_REASON)


def _shown(body: bytes) -> str:
    text = " ".join(body[:300].decode("utf-8", "replace").split())
    return repr(text[:120]) if text else "nothing"
