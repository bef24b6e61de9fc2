"""Options and variables of older SGLang versions, with what took their place in 0.5.23 (facts section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spectune.engines.sglang.printable import printable
from spectune.engines.sglang.resolution import Finding


@dataclass(frozen=True)
class Successor:
    """What took the place of an option that is gone.

    Attributes:
        gone: Since which version, in words.
        words: The new words; `{}` takes the old option's values. Empty when nothing replaces it.
        advice: What to do where the words alone do not say it.
    """

    gone: str
    words: str = ""
    advice: str = ""

    def rewrite(self, values: Sequence[str]) -> list[str]:
        """Return the words to use now, given the old option's values."""
        rewritten: list[str] = []
        for word in self.words.split():
            rewritten += list(values) if word == "{}" else [word]
        return rewritten


_PIECEWISE = "since 0.5.20"
SUCCESSORS: Mapping[str, Successor] = {
    "cuda-graph-max-bs": Successor("since 0.5.20", "--cuda-graph-max-bs-decode {}"),
    "cuda-graph-bs": Successor("since 0.5.20", "--cuda-graph-bs-decode {}"),
    "enable-piecewise-cuda-graph": Successor(
        "since 0.5.15", "", "leave it out: the prefill graph is on by default (--cuda-graph-backend-prefill breakable)"
    ),
    "disable-piecewise-cuda-graph": Successor(_PIECEWISE, "--disable-prefill-cuda-graph"),
    "piecewise-cuda-graph-tokens": Successor(_PIECEWISE, "--cuda-graph-bs-prefill {}"),
    "piecewise-cuda-graph-max-tokens": Successor(_PIECEWISE, "--cuda-graph-max-bs-prefill {}"),
    "piecewise-cuda-graph-compiler": Successor(_PIECEWISE, "", "leave it out: the piecewise compiler was removed"),
    "enable-breakable-cuda-graph": Successor(_PIECEWISE, "--cuda-graph-backend-prefill breakable"),
    "speculative-ngram-branch-length": Successor("since 0.5.10", "--speculative-ngram-max-trie-depth {}"),
    "speculative-ngram-min-match-window-size": Successor("since 0.5.10", "", "leave it out: nothing replaces it"),
    "speculative-ngram-max-match-window-size": Successor("since 0.5.10", "", "leave it out: nothing replaces it"),
    "speculative-dflash-draft-window-size": Successor("since 0.5.20", "--speculative-draft-window-size {}"),
    "enable-deepep-moe": Successor("since 0.5.10", "--moe-a2a-backend deepep"),
}

# Still accepted in 0.5.23 with a warning.
DEPRECATED: Mapping[str, str] = {
    "disable-cuda-graph": "--cuda-graph-backend-decode disabled --cuda-graph-backend-prefill disabled",
    "enable-dp-attention": "--attn-dp-size N instead of --dp-size N --enable-dp-attention",
    "monokernel-backend": "--enable-amd-monokernel",
    "enable-flashinfer-allreduce-fusion": "--flashinfer-allreduce-fusion-backend auto",
}

_GONE_VARIABLES: Mapping[str, str] = {
    "SGLANG_ENABLE_SPEC_V2": "leave it out: since 0.5.15 the overlapped (v2) workers always run",
}


def deprecation(name: str, spelling: str) -> Finding | None:
    """Return the finding for an option that SGLang 0.5.23 still takes but will not for long."""
    if name not in DEPRECATED:
        return None
    message = f"{printable(spelling)} is deprecated; SGLang still accepts it and warns"
    return Finding("deprecated-option", "info", message, f"use {DEPRECATED[name]}")


def gone_variables(env: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each variable that this SGLang no longer reads."""
    return [
        Finding("gone-variable", "warning", f"{name}={printable(env[name], 60)} is read by no code of 0.5.23", advice)
        for name, advice in _GONE_VARIABLES.items()
        if name in env
    ]
