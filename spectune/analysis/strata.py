"""Accept length by kind of request: by prompt class and by context length, and where speculation pays least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spectune.analysis.comparison import PAYS, Pays, pays
from spectune.analysis.estimate import Estimate, ratio

FEWEST_REQUESTS = 5
"""Requests behind a stratum before it may be called the worst: the extreme of many small ones is chance."""

Kind = Literal["class", "context"]
_SORTS: Mapping[Kind, str] = {"class": "the classes of prompts", "context": "the lengths of context"}


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
        unproven: What such launches cannot show, whatever the interval.
    """

    kind: Kind
    name: str
    level: str
    requests: int
    accept_length: Estimate
    break_even: Estimate
    unproven: frozenset[Pays] = frozenset()

    @property
    def speedup(self) -> Estimate:
        """accept_length / break_even: above 1 speculation pays for this kind."""
        return ratio(self.accept_length, self.break_even)

    @property
    def verdict(self) -> Pays:
        """By the interval of the speedup."""
        return pays(self.speedup, self.unproven)

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


def least(found: Sequence[Stratum], kind: Kind) -> list[Stratum]:
    """The kinds of request that speculation helps least, the lowest first; empty where there is nothing to choose from.

    More than one where the lowest's interval meets those of others: which of them gains least is not known then.
    """
    known = sorted(_known(found, kind), key=lambda stratum: stratum.accept_length.est)
    if len(known) < 2:
        return []
    return [stratum for stratum in known if stratum.accept_length.lo <= known[0].accept_length.hi]


def worst_in_words(found: Sequence[Stratum]) -> list[str]:
    """One sentence on the worst class and one on the worst context length, where there are several of them."""
    return [_sentence(lowest, len(_known(found, kind))) for kind in _SORTS if (lowest := least(found, kind))]


def _known(found: Sequence[Stratum], kind: Kind) -> list[Stratum]:
    return [stratum for stratum in found if stratum.kind == kind and stratum.requests >= FEWEST_REQUESTS]


def _sentence(lowest: Sequence[Stratum], of: int) -> str:
    """Say which kinds gain least: one, some that are not told apart, or, where that is all of them, none."""
    first, names = lowest[0], " and ".join(stratum.words for stratum in lowest)
    lead = f"{names} gain least"
    if len(lowest) == of:
        lead = f"{_SORTS[first.kind]} are not told apart by what they gain; lowest are {first.words}"
    elif len(lowest) > 1:
        lead = f"{lead} and are not told apart; lowest are {first.words}"
    return (
        f"{lead}: accept length {first.accept_length.words} against a break-even of {first.break_even.words}: "
        f"{PAYS[first.verdict]} there"
    )
