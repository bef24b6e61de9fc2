"""A handful of requests to a server that is not ours, one after the other: its speed and acceptance right now."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import aiohttp
import orjson

from spectune.bench.exchange import speculation_counters
from spectune.bench.sse import DONE, EventParser

PROMPTS = 8
OUTPUT_TOKENS = 128
_PATIENCE = aiohttp.ClientTimeout(total=120, sock_connect=10)


class ProbeFailedError(Exception):
    """A request was not answered with a generation; the message says how."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of the requests together.

    Attributes:
        requests: How many were answered.
        tokens: Tokens they generated.
        seconds: From the first to the last chunk of each, summed: decoding alone.
        decoded: Tokens that arrived in these seconds.
        verifies: Verify passes; 0 without speculation.
        correct: Drafted tokens that were accepted, bonus tokens left out.
        cached_tokens: Prompt tokens that came from the prefix cache.
        prompt_tokens: Prompt tokens in all.
    """

    requests: int
    tokens: int
    seconds: float
    decoded: int
    verifies: int
    correct: int
    cached_tokens: int
    prompt_tokens: int

    @property
    def decode_speed(self) -> float | None:
        """Tokens per second of one request, its time to first token left out; None when too little came."""
        return self.decoded / self.seconds if self.seconds > 0 and self.decoded > 0 else None


async def probe(
    base_url: str,
    headers: Mapping[str, str],
    texts: Sequence[str],
    *,
    output_tokens: int,
    told: Callable[[int], None] = lambda _: None,
) -> Probe:
    """Send the texts to `/generate`, one after the other, greedily.

    Args:
        base_url: `http://host:port`.
        headers: Of every request, such as an authorization.
        texts: Prompts as plain text; no chat template is applied.
        output_tokens: Tokens of each at most.
        told: Told how many have been answered, after each.

    Raises:
        ProbeFailedError: At the first request that fails.
    """
    total = Probe(0, 0, 0.0, 0, 0, 0, 0, 0)
    async with aiohttp.ClientSession(headers=dict(headers), timeout=_PATIENCE, trust_env=False) as session:
        for done, text in enumerate(texts, 1):
            body = {
                "text": text,
                "sampling_params": {"temperature": 0, "max_new_tokens": output_tokens},
                "stream": True,
            }
            try:
                one = await _generate(session, f"{base_url}/generate", body)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                raise ProbeFailedError(f"{type(error).__name__}: {error}") from error
            total = Probe(*(sofar + new for sofar, new in zip(astuple(total), astuple(one), strict=True)))
            told(done)
    return total


async def _generate(session: aiohttp.ClientSession, url: str, body: Mapping[str, object]) -> Probe:
    async with session.post(url, json=body, allow_redirects=False) as response:
        if response.status != 200:
            raise ProbeFailedError(f"/generate answered HTTP {response.status}")
        parser, chunks = EventParser(), []
        meta: dict[str, Any] = {}
        async for received in response.content.iter_any():
            for event in parser.feed(received):
                if event == DONE:
                    continue
                content = orjson.loads(event)
                found = content.get("meta_info") if isinstance(content, dict) else None
                if not isinstance(found, dict) or not isinstance(found.get("completion_tokens"), int):
                    raise ProbeFailedError(f"/generate answered something else than a generation: {event[:120]!r}")
                meta = found
                chunks.append((time.monotonic(), meta["completion_tokens"]))
    if not chunks:
        raise ProbeFailedError("/generate answered without a token")
    (first_s, first), (last_s, last) = chunks[0], chunks[-1]
    verifies, correct, _ = speculation_counters(meta, last)
    return Probe(
        1, last, last_s - first_s, last - first, verifies, correct,
        int(meta.get("cached_tokens") or 0), int(meta.get("prompt_tokens") or 0),
    )  # fmt: skip
