"""Accept length by kind of request: by prompt class and by context length, and where speculation pays least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spectune.analysis.break_even import break_even_accept_length
from spectune.analysis.estimate import Estimate, ratio
from spectune.analysis.measurement import LevelMeasurement

FEWEST_REQUESTS = 5
"""Requests behind a stratum before it may be called the worst: the extreme of many small ones is chance."""

Kind = Literal["class", "context"]


@dataclass(frozen=True, slots=True)
class Stratum:
    """One kind of request at one level, against the baseline.

    Attributes:
        kind: What it is a kind of.
        name: The class, or the range of tokens of context.
        requests: How many requests it holds.
        accept_length: Of these requests.
        break_even: Accept length at which speculation is as fast as the baseline there: baseline speed × cycle. The
            engine verifies all kinds in one batch, so the cycle of the level is that of each.
        margin: accept_length / break_even: above 1 speculation pays for this kind.
    """

    kind: Kind
    name: str
    requests: int
    accept_length: Estimate
    break_even: float
    margin: Estimate

    @property
    def words(self) -> str:
        """What kind of request this is."""
        return f"{self.name} prompts" if self.kind == "class" else f"contexts of {self.name} tokens"

    def to_json(self) -> dict[str, Any]:
        """All of it for other programs."""
        return {
            "kind": self.kind, "name": self.name, "requests": self.requests,
            "accept_length": self.accept_length.to_json(), "break_even": self.break_even,
            "margin": self.margin.to_json(),
        }  # fmt: skip


def strata(level: LevelMeasurement, baseline_tok_s: float) -> list[Stratum]:
    """Every kind of request of a level: classes by name, then context lengths, shortest first.

    Args:
        level: Of a configuration that speculates.
        baseline_tok_s: Best speed of one request without speculation at the same level.
    """
    even = break_even_accept_length(baseline_tok_s, level.cycle_ms.est)
    kinds: tuple[tuple[Kind, dict[str, Estimate], dict[str, int]], ...] = (
        ("class", level.accept_length_by_class, level.requests_by_class),
        ("context", level.accept_length_by_context, level.requests_by_context),
    )
    return [
        Stratum(kind, name, requests.get(name, 0), length, even, ratio(length, Estimate.exactly(even)))
        for kind, lengths, requests in kinds
        for name, length in lengths.items()
    ]


def worst(found: Sequence[Stratum], kind: Kind) -> Stratum | None:
    """The kind of request that speculation helps least; None where there is nothing to choose from."""
    known = [stratum for stratum in found if stratum.kind == kind and stratum.requests >= FEWEST_REQUESTS]
    return min(known, key=lambda stratum: stratum.margin.est) if len(known) > 1 else None


def worst_in_words(found: Sequence[Stratum]) -> list[str]:
    """One sentence on the worst class and one on the worst context length, where there are several of them."""
    extremes = (worst(found, "class"), worst(found, "context"))
    return [_sentence(stratum) for stratum in extremes if stratum is not None]


def _sentence(stratum: Stratum) -> str:
    length, even = stratum.accept_length, stratum.break_even
    verdict = (
        "speculation pays even there"
        if stratum.margin.lo > 1.0
        else "speculation loses there"
        if stratum.margin.hi < 1.0
        else "whether speculation pays there is not known"
    )
    return (
        f"{stratum.words} gain least: accept length {length.est:.2f} ({length.lo:.2f} to {length.hi:.2f}) against a "
        f"break-even of {even:.2f}: {verdict}"
    )
