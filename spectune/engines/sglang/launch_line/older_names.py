"""Options and variables of older SGLang versions, with what took their place in 0.5.23 (facts section 6)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from spectune.engines.sglang.options import SHIPPED_VERSION
from spectune.engines.sglang.printable import printable
from spectune.engines.sglang.resolution import Finding
from spectune.engines.sglang.versions.history import history

# Still accepted in 0.5.23 with a warning.
DEPRECATED: Mapping[str, str] = {
    "disable-cuda-graph": "--cuda-graph-backend-decode disabled --cuda-graph-backend-prefill disabled",
    "enable-dp-attention": "--attn-dp-size N instead of --dp-size N --enable-dp-attention",
    "monokernel-backend": "--enable-amd-monokernel",
    "enable-flashinfer-allreduce-fusion": "--flashinfer-allreduce-fusion-backend auto",
}

_VERSION = re.compile(r"sglang(?:\[[^\]\s]{0,80}\])?(?::v?|==)(\d+(?:\.\d+)+(?:\.?(?:post|rc|dev)\d+)?)")
_GONE_VARIABLES: Mapping[str, str] = {
    "SGLANG_ENABLE_SPEC_V2": "leave it out: since 0.5.15 the overlapped (v2) workers always run",
}


def last_version(name: str) -> str:
    """Return the last version that has an option which is gone, in words; the history of names knows."""
    known = history().get(name)
    return f"the last SGLang that had it is {known.last}" if known is not None and known.last else "gone before 0.5.6"


def deprecation(name: str, spelling: str) -> Finding | None:
    """Return the finding for an option that SGLang 0.5.23 still takes but will not for long."""
    if name not in DEPRECATED:
        return None
    message = f"{printable(spelling)} is deprecated; SGLang still accepts it and warns"
    return Finding("deprecated-option", "info", message, f"use {DEPRECATED[name]}")


def other_version(text: str) -> list[Finding]:
    """Return a warning where an image or a package in the text is another SGLang than the one that is known."""
    named = {found[1] for found in _VERSION.finditer(text)} - {SHIPPED_VERSION}
    if not named:
        return []
    message = f"this is SGLang {', '.join(sorted(named))}, but what is said here is about {SHIPPED_VERSION}"
    advice = "options, defaults and rules differ between versions; a search asks the installed one"
    return [Finding("other-version", "warning", message, advice)]


def gone_variables(env: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each variable that this SGLang no longer reads."""
    return [
        Finding("gone-variable", "warning", f"{name}={printable(env[name], 60)} is read by no code of 0.5.23", advice)
        for name, advice in _GONE_VARIABLES.items()
        if name in env
    ]
