"""Options that are gone, with what took their place in SGLang 0.5.23 (facts section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Successor:
    """What took the place of an option that is gone.

    Attributes:
        words: The new words; `{}` takes the old option's values. Empty when nothing replaces it.
        advice: What to do where the words alone do not say it.
    """

    words: str = ""
    advice: str = ""

    @property
    def in_a_space(self) -> str:
        """What to write in a search space; empty when nothing replaces it."""
        return " ".join(word.removeprefix("--") for word in self.words.split() if word != "{}")

    def rewrite(self, values: Sequence[str]) -> list[str]:
        """Return the words to use now, given the old option's values."""
        rewritten: list[str] = []
        for word in self.words.split():
            rewritten += list(values) if word == "{}" else [word]
        return rewritten


SUCCESSORS: Mapping[str, Successor] = {
    "cuda-graph-max-bs": Successor("--cuda-graph-max-bs-decode {}"),
    "cuda-graph-bs": Successor("--cuda-graph-bs-decode {}"),
    "enable-piecewise-cuda-graph": Successor(
        "", "leave it out: the prefill graph is on by default (--cuda-graph-backend-prefill breakable)"
    ),
    "disable-piecewise-cuda-graph": Successor("--disable-prefill-cuda-graph"),
    "piecewise-cuda-graph-tokens": Successor("--cuda-graph-bs-prefill {}"),
    "piecewise-cuda-graph-max-tokens": Successor("--cuda-graph-max-bs-prefill {}"),
    "piecewise-cuda-graph-compiler": Successor("", "leave it out: the piecewise compiler was removed"),
    "enable-breakable-cuda-graph": Successor("--cuda-graph-backend-prefill breakable"),
    "speculative-ngram-branch-length": Successor("--speculative-ngram-max-trie-depth {}"),
    "speculative-ngram-min-match-window-size": Successor("", "leave it out: nothing replaces it"),
    "speculative-ngram-max-match-window-size": Successor("", "leave it out: nothing replaces it"),
    "speculative-dflash-draft-window-size": Successor("--speculative-draft-window-size {}"),
    "enable-deepep-moe": Successor("--moe-a2a-backend deepep"),
    "enable-ep-moe": Successor("", "write --ep-size with the value of --tp-size"),
}
