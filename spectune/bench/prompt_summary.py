"""What a workload consists of, to be read before anything is measured with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Any, Literal

from spectune.bench.prompt_sources import Workload
from spectune.bench.prompt_stream import PromptStream
from spectune.bench.prompts import Prompt
from spectune.counts import count

LOOKED_AT = 300
"""Prompts whose lengths stand for all."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long prompts are.

    Attributes:
        unit: Tokens as the engine counts them, or characters where no tokenizer is at hand.
        p5: Twentieth part of them is shorter.
        median: Half of them are.
        p95: All but a twentieth part are.
        longest: Of those looked at.
    """

    unit: Literal["tokens", "characters"]
    p5: int
    median: int
    p95: int
    longest: int

    @classmethod
    def of(cls, unit: Literal["tokens", "characters"], lengths: Sequence[int]) -> Lengths:
        """The distribution of two lengths or more."""
        cuts = quantiles(lengths, n=20, method="inclusive")
        return cls(unit, round(cuts[0]), round(cuts[9]), round(cuts[18]), max(lengths))


@dataclass(frozen=True, slots=True)
class WorkloadSummary:
    """What is asked.

    Attributes:
        shares: Fraction of the requests, per class.
        distinct: Different prompts per class; None where they are made as needed.
        duplicates: Removed, because they repeated another prompt.
        empty: Conversations left out, because they ask nothing.
        shared: Share of the requests that begin with the shared prefix.
        recorded_rate: Requests per second of the file's timestamps; None where there are none.
        lengths: Of prompts as they are sent.
        crowded: Classes with fewer prompts than may be in flight at once.
    """

    shares: dict[str, float]
    distinct: dict[str, int | None]
    duplicates: int
    empty: int
    shared: float
    recorded_rate: float | None
    lengths: Lengths
    crowded: tuple[str, ...]

    def lines(self) -> list[str]:
        """A few lines for people."""
        classes = ", ".join(
            f"{name} {share:.0%} ({'made as needed' if self.distinct[name] is None else f'{self.distinct[name]:,}'})"
            for name, share in self.shares.items()
        )
        removed = [f"duplicates removed: {self.duplicates:,}"] * (self.duplicates > 0)
        removed += [f"conversations without a question left out: {self.empty:,}"] * (self.empty > 0)
        at = self.lengths
        length = f"{at.median:,} {at.unit} (90 % between {at.p5:,} and {at.p95:,}, longest seen {at.longest:,})"
        lines = [f"prompts: {'; '.join([classes, *removed])}", f"length: median {length}"]
        if self.shared:
            lines.append(f"{self.shared:.0%} of the requests begin with the shared prefix: cached tokens are expected")
        if self.recorded_rate is not None:
            lines.append(f"recorded arrivals: {self.recorded_rate:.3g} requests/s")
        lines += [
            f"note: {name} has only {count(self.distinct[name] or 0, 'prompt')}: "
            "the same one is in flight several times at once"
            for name in self.crowded
        ]
        return lines

    def to_json(self) -> dict[str, Any]:
        """For other programs."""
        at = self.lengths
        return {
            "classes": {name: {"share": s, "distinct": self.distinct[name]} for name, s in self.shares.items()},
            "duplicates_removed": self.duplicates,
            "conversations_without_question": self.empty,
            "shared_prefix_share": self.shared,
            "recorded_rate": self.recorded_rate,
            f"length_{at.unit}": {"p5": at.p5, "median": at.median, "p95": at.p95, "longest": at.longest},
            "fewer_prompts_than_in_flight": list(self.crowded),
        }


def looked_at(workload: Workload, *, seed: int) -> list[Prompt]:
    """The first prompts a study with this seed sends."""
    return PromptStream(workload, seed=seed).take(LOOKED_AT)


def summarize(workload: Workload, lengths: Lengths, *, in_flight: int) -> WorkloadSummary:
    """Describe a workload.

    Args:
        workload: What is asked.
        lengths: Of some of its prompts.
        in_flight: Requests under way at once at the busiest level.
    """
    shares = workload.class_shares
    distinct: dict[str, int | None] = dict.fromkeys(shares, 0)
    for stratum in workload.strata:
        if callable(stratum.supply):
            distinct[stratum.prompt_class] = None
        elif (before := distinct[stratum.prompt_class]) is not None:
            distinct[stratum.prompt_class] = before + len(stratum.supply)
    return WorkloadSummary(
        shares=shares,
        distinct=distinct,
        duplicates=workload.duplicates,
        empty=workload.empty,
        shared=0.0 if workload.shared_prefix is None else workload.shared_prefix.share,
        recorded_rate=workload.recorded_rate,
        lengths=lengths,
        crowded=tuple(name for name, n in distinct.items() if n is not None and n < in_flight * shares[name]),
    )


def characters(prompts: Sequence[Prompt]) -> Lengths:
    """Lengths where no tokenizer is at hand."""
    return Lengths.of("characters", [prompt.characters for prompt in prompts])
