"""Who may ask the engine for what, with `--api-key`: as SGLang decides it (facts, section 4.1)."""

from __future__ import annotations

import secrets

OPEN = ("/health", "/ready", "/metrics")  # beginnings of paths that probes ask without a key


def allowed(method: str, path: str, authorization: str | None, api_key: str | None) -> bool:
    """Whether a request is served.

    Args:
        method: Its method; browsers ask OPTIONS before they send a key.
        path: Its path.
        authorization: Its header of that name.
        api_key: The engine's; None lets everybody in.
    """
    if not api_key or method == "OPTIONS" or path.startswith(OPEN):
        return True
    scheme, _, given = (authorization or "").partition(" ")
    return scheme.lower() == "bearer" and secrets.compare_digest(given.encode(), api_key.encode())
