"""Which candidates of a study are worth rows in the terminal, in which order, and a line on all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spectune.search import Summary
from spectune.search.answer.sentence import unconfirmed
from spectune.search.answer.summary_fields import CandidateLevel

SHOWN_OF_THE_REST = 6
MARKS = {"pays": "green", "loses": "red", "unclear": "yellow"}
"""Colour of each verdict."""


@dataclass(frozen=True)
class Shown:
    """One candidate.

    Attributes:
        label: Its name.
        levels: Its figures at each level.
        plain: Whether it does not speculate.
        recommended: Whether the study recommends it.
        optimal: Whether nothing beats it in every objective.
        tied: Whether the launches cannot tell it from the recommended one.
    """

    label: str
    levels: Sequence[CandidateLevel]
    plain: bool
    recommended: bool
    optimal: bool
    tied: bool

    @property
    def heading(self) -> str:
        """Its name, and what makes it worth a look."""
        first = self.levels[0]
        confirmed = first.confirmed and not self.plain
        words = {
            "recommended": self.recommended, "not told apart": self.tied, "Pareto-optimal": self.optimal,
            "confirmed": confirmed,
        }  # fmt: skip
        if (self.recommended or self.optimal) and not first.confirmed:
            words[unconfirmed(first.trials)] = True
        marks = ", ".join(word for word, holds in words.items() if holds)
        return f"{self.label} ({marks})" if marks else self.label


def answer_rows(summary: Summary) -> tuple[list[Shown], list[str]]:
    """Return the candidates to show, and what to say of those that are not.

    What the verdict rests on comes first, the recommended one before all, then the Pareto set and the best of the rest.
    Configurations without speculation mostly differ by less than their launches do, so of them only the best is shown,
    and what is exported: those that nothing beats in every objective.
    """
    every = list(_candidates(summary))
    plain = [one for one in every if one.plain]
    best = next((one for one in plain if one.recommended), None) or next(iter(_compared(summary, plain)), None)
    by_id = {one.levels[0].candidate_id: one for one in every}
    first = [by_id[named] for named in summary.named if named in by_id]
    first += [] if best is None or best in first else [best]
    rest = [one for one in every if (one.optimal or not one.plain) and one not in first]
    optimal = sum(one.optimal for one in rest)
    shown = [*first, *rest[: optimal + SHOWN_OF_THE_REST]]
    lines = []
    others = [one for one in plain if one not in shown]
    if best is not None and others:
        lines.append(_told(len(others), "without", [_speeds(one, best) for one in others]))
    if left := rest[optimal + SHOWN_OF_THE_REST :]:
        speedups = [at.figures.speedup.est for one in left for at in one.levels if at.figures.speedup is not None]
        lines.append(_told(len(left), "with", [speedups]))
    return shown, lines


def _candidates(summary: Summary) -> Iterator[Shown]:
    """Yield every candidate: the recommended one, the Pareto set, then the rest, the fastest first."""
    by_id: dict[str, list[CandidateLevel]] = {}
    for at in summary.candidates:
        by_id.setdefault(at.candidate_id, []).append(at)
    baselines = {launch.trial for launch in summary.baselines}
    recommended = None if summary.recommended is None else summary.recommended.candidate_id
    tied = {tie.candidate_id for tie in summary.ties}
    found = [
        Shown(
            levels[0].label,
            levels,
            plain=not baselines.isdisjoint(levels[0].trials),
            recommended=candidate_id == recommended,
            optimal=not set(summary.pareto).isdisjoint(levels[0].trials),
            tied=candidate_id in tied,
        )
        for candidate_id, levels in by_id.items()
    ]

    def rank(one: Shown) -> tuple[bool, bool, float]:
        return not one.recommended, not one.optimal, -one.levels[0].figures.decode_speed.est

    yield from sorted(found, key=rank)


def _compared(summary: Summary, plain: Sequence[Shown]) -> list[Shown]:
    """Return the configurations without speculation, the one that all others are compared with first."""
    wanted = None if summary.speedup is None else summary.speedup.baseline_id
    return sorted(plain, key=lambda one: one.levels[0].candidate_id != wanted)


def _speeds(one: Shown, best: Shown) -> list[float]:
    """Return the decode speeds of one over those of another, at the levels both have."""
    of_best = {at.level: at.figures.decode_speed.est for at in best.levels}
    return [at.figures.decode_speed.est / of_best[at.level] for at in one.levels if at.level in of_best]


def _told(count: int, how: str, ratios: Sequence[Sequence[float]]) -> str:
    known = [f"{ratio:.2f}" for ratio in sorted(ratio for group in ratios for ratio in group)]
    span = "" if not known else f", {known[0]}" if known[0] == known[-1] else f", {known[0]}–{known[-1]}"
    return f"and {count} more {how} speculation{span and f'{span} × the best without'}"
