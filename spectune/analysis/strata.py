"""Accept length by kind of request: by prompt class and by context length, and where speculation pays least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spectune.analysis.comparison import PAYS, Pays, pays
from spectune.analysis.estimate import Estimate, ratio

FEWEST_REQUESTS = 5
"""Requests behind a stratum before it may be called the worst: the extreme of many small ones is chance."""

Kind = Literal["class", "context"]


@dataclass(frozen=True, slots=True)
class Stratum:
    """One kind of request of a candidate at one level, over all its launches.

    Attributes:
        kind: What it is a kind of.
        name: The class, or the range of tokens of context.
        level: The load point.
        requests: How many requests it holds.
        accept_length: Of these requests.
        break_even: Accept length at which the candidate is as fast as the best baseline there. The engine verifies all
            kinds in one batch, so the break-even of all requests is that of each.
    """

    kind: Kind
    name: str
    level: str
    requests: int
    accept_length: Estimate
    break_even: Estimate

    @property
    def speedup(self) -> Estimate:
        """accept_length / break_even: above 1 speculation pays for this kind."""
        return ratio(self.accept_length, self.break_even)

    @property
    def verdict(self) -> Pays:
        """By the interval of the speedup."""
        return pays(self.speedup)

    @property
    def words(self) -> str:
        """What kind of request this is."""
        return f"{self.name} prompts" if self.kind == "class" else f"contexts of {self.name} tokens"

    def to_json(self) -> dict[str, Any]:
        """All of it for other programs."""
        return {
            "kind": self.kind, "name": self.name, "level": self.level, "requests": self.requests,
            "accept_length": self.accept_length.to_json(), "break_even": self.break_even.to_json(),
            "speedup": self.speedup.to_json(), "verdict": self.verdict,
        }  # fmt: skip


def worst(found: Sequence[Stratum], kind: Kind) -> Stratum | None:
    """The kind of request that speculation helps least; None where there is nothing to choose from."""
    known = [stratum for stratum in found if stratum.kind == kind and stratum.requests >= FEWEST_REQUESTS]
    return min(known, key=lambda stratum: stratum.accept_length.est) if len(known) > 1 else None


def worst_in_words(found: Sequence[Stratum]) -> list[str]:
    """One sentence on the worst class and one on the worst context length, where there are several of them."""
    extremes = (worst(found, "class"), worst(found, "context"))
    return [_sentence(stratum) for stratum in extremes if stratum is not None]


def _sentence(stratum: Stratum) -> str:
    return (
        f"{stratum.words} gain least: accept length {stratum.accept_length.words} against a break-even of "
        f"{stratum.break_even.words}: {PAYS[stratum.verdict]} there"
    )
