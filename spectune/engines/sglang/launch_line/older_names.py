"""Options and variables of older SGLang versions, with what took their place in 0.5.23 (facts section 6)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from spectune.engines.sglang.options import SHIPPED_VERSION
from spectune.engines.sglang.resolution import Finding
from spectune.engines.sglang.variables import OVERLAP
from spectune.engines.sglang.versions.history import FIRST_VERSION, history, older_than
from spectune.printable import printable

# Still accepted in 0.5.23 with a warning.
DEPRECATED: Mapping[str, str] = {
    "disable-cuda-graph": "--cuda-graph-backend-decode disabled --cuda-graph-backend-prefill disabled",
    "enable-dp-attention": "--attn-dp-size N instead of --dp-size N --enable-dp-attention",
    "monokernel-backend": "--enable-amd-monokernel",
    "enable-flashinfer-allreduce-fusion": "--flashinfer-allreduce-fusion-backend auto",
}

_VERSION = re.compile(r"sglang(?:\[[^\]\s]{0,80}\])?(?::v?|==)(\d+(?:\.\d+)+(?:\.?(?:post|rc|dev)\d+)?)")
_VARIABLES_GONE = "0.5.15"
_GONE_VARIABLES: Mapping[str, str] = {
    OVERLAP: "leave it out: since 0.5.15 the overlapped (v2) workers always run",
}


def last_version(name: str) -> str:
    """Return the last version that has an option which is gone, in words; the history of names knows."""
    known = history().get(name)
    if known is None or known.last is None:
        return f"gone before {FIRST_VERSION}"
    return f"the last SGLang that had it is {known.last}"


def deprecation(name: str, spelling: str) -> Finding | None:
    """Return the finding for an option that SGLang 0.5.23 still takes but will not for long."""
    if name not in DEPRECATED:
        return None
    message = f"{printable(spelling)} is deprecated; SGLang still accepts it and warns"
    return Finding("deprecated-option", "info", message, f"use {DEPRECATED[name]}")


def named_version(text: str) -> str | None:
    """Return the version of the image or the package in a text, if it is one and what it takes is known."""
    named = {found[1] for found in _VERSION.finditer(text)}
    return next(iter(named)) if len(named) == 1 and all(map(is_known, named)) else None


def is_known(version: str) -> bool:
    """Whether the options of a version are known."""
    return not (older_than(version, FIRST_VERSION) or older_than(SHIPPED_VERSION, version))


def other_version(text: str, judged: str) -> list[Finding]:
    """Say of which version the answer is, where that is not the one whose every option and default is known.

    Args:
        text: The command.
        judged: The version it is judged by.
    """
    named = {found[1] for found in _VERSION.finditer(text)} - {judged}
    if named:
        message = f"this is SGLang {', '.join(sorted(named))}, but what is said here is about {judged}"
        advice = "options, defaults and rules differ between versions; a search asks the installed one"
        return [Finding("other-version", "warning", message, advice)]
    if judged == SHIPPED_VERSION:
        return []
    message = f"options and rules are those of SGLang {judged}; defaults no rule speaks of are {SHIPPED_VERSION}'s"
    return [Finding("other-version", "info", message, "a search asks the installed one")]


def had(version: str, name: str) -> bool:
    """Whether an option that is gone was one of a version's."""
    known = history().get(name)
    return known is not None and not (
        older_than(version, known.first) or known.last is None or older_than(known.last, version)
    )


def still_named(written: str, words: Sequence[str], version: str) -> Finding:
    """Return the finding for an option of the version asked about, under the name it was given since."""
    now = f"explained as {printable(' '.join(words), 200)}" if words else "nothing took its place, it is left out here"
    return Finding("older-option", "info", f"{written} is an option of SGLang {version}: {now}", "")


def not_yet(name: str, version: str) -> Finding | None:
    """Return the refusal of an option that came after a version; None where it had it."""
    known = history().get(name)
    if known is None or not older_than(version, known.first):
        return None
    message = f"SGLang {version} has no --{name}, which came with {known.first}"
    return Finding("newer-option", "fatal", message, f"write --{known.older}" if known.older else "leave it out")


def gone_variables(env: Mapping[str, str], version: str) -> list[Finding]:
    """Return a finding for each variable that a version no longer reads."""
    if older_than(version, _VARIABLES_GONE):
        return []
    return [
        Finding(
            "gone-variable", "warning", f"{name}={printable(env[name], 60)} is read by no code of {version}", advice
        )
        for name, advice in _GONE_VARIABLES.items()
        if name in env
    ]
