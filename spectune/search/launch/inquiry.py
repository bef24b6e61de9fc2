"""What a running engine says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PATIENCE_S = 30.0


async def server_info(url: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the engine's effective arguments; empty when it does not say."""
    return await _asked(url, headers, "/server_info", "/get_server_info")  # the second is the older name


async def context_length(url: str, headers: Mapping[str, str]) -> int | None:
    """Return how many tokens a prompt and its answer may have together; None when the engine does not say."""
    models = (await _asked(url, headers, "/v1/models")).get("data")
    length = models[0].get("max_model_len") if isinstance(models, list) and models else None
    return length if isinstance(length, int) and length > 0 else None


async def _asked(url: str, headers: Mapping[str, str], *paths: str) -> dict[str, Any]:
    import aiohttp  # a tenth of what a command loads, and only launches need it

    async with aiohttp.ClientSession(headers=headers, trust_env=False) as session:
        for path in paths:
            try:
                async with session.get(url + path, timeout=aiohttp.ClientTimeout(total=_PATIENCE_S)) as answer:
                    if answer.status == 200:
                        said = await answer.json()
                        return said if isinstance(said, dict) else {}
            except (aiohttp.ClientError, TimeoutError, ValueError):
                continue
    return {}
