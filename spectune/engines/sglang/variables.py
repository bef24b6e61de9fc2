"""Variables that switch something on in SGLang, and how it reads them."""

from __future__ import annotations

from collections.abc import Mapping

OVERLAP = "SGLANG_ENABLE_SPEC_V2"
LONGER_CONTEXT = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
_ON = frozenset({"true", "1", "yes", "y"})


def means_on(value: str | None) -> bool:
    """Whether a variable's value switches on; what SGLang cannot read leaves the default, off (environ.py, EnvBool)."""
    return value is not None and value.lower() in _ON


def longer_context_allowed(env: Mapping[str, str]) -> bool:
    """Whether a launch may serve more tokens than its model says it was made for."""
    return means_on(env.get(LONGER_CONTEXT))
