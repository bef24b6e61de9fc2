"""The answer in a sentence, with the figures worth a glance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spectune.analysis.verdict import Decision
from spectune.counts import several
from spectune.report import wording
from spectune.report.material import Material
from spectune.report.sections.section import Section
from spectune.search.storage.records import Status

DECISIONS: Mapping[Decision, tuple[str, str]] = {
    "speculation": ("good", "Speculate"),
    "no_speculation": ("bad", "Do not speculate"),
    "tie": ("unclear", "A tie: do not speculate"),
    "undecided": ("unclear", "Undecided"),
}


@dataclass(frozen=True)
class Tile:
    """A figure, what it is, and a remark."""

    figure: str
    meaning: str
    remark: str = ""


@dataclass(frozen=True)
class Answer:
    """The verdict.

    Attributes:
        sentence: It.
        details: What is to be known beside it, a line each.
        tiles: Figures worth a glance.
        words: How it came about.
    """

    sentence: str
    details: tuple[str, ...]
    tiles: tuple[Tile, ...]
    words: tuple[str, ...]


def decision(material: Material) -> str:
    """Return the verdict in a word or two."""
    return _decision(material)[1]


def verdict(material: Material) -> Section:
    """Return the verdict of a study."""
    tone, decided = _decision(material)
    told = material.told
    return Section(
        "verdict",
        decided,
        Answer(told.sentence, tuple(told.details), tuple(_tiles(material)), tuple(told.words)),
        tone,
    )


def _decision(material: Material) -> tuple[str, str]:
    """Return tone and words: an answer that rests on the search alone, or on part of it, says so."""
    told = material.told
    if told.no_answer is not None:
        return "unclear", "No answer"
    if told.unkept is not None:
        return "unclear", "Not compared"
    tone, decided = DECISIONS[told.verdict]
    if told.verdict == "undecided" or material.focus is None:
        return tone, decided
    so_far = "" if told.finished else " so far"
    if material.doubt(material.focus):
        return "unclear", f"{decided}{so_far}: not confirmed by a later launch"
    return tone, decided + so_far


def _tiles(material: Material) -> Iterator[Tile]:
    yield from _judged(material)
    trials = material.trials
    failed = sum(trial.status is Status.FAILED for trial in trials)
    suspect = sum(trial.status is Status.SUSPECT for trial in trials)
    yield Tile(
        str(len(trials)), "launch" if len(trials) == 1 else several("launch"), f"{failed} failed, {suspect} suspect"
    )  # fmt: skip
    effect = material.told.detectable_effect
    if effect is not None:
        yield Tile(f"{effect:.1%}", "smallest gain these launches could show")


def _judged(material: Material) -> Iterator[Tile]:
    """Yield the ratio that the verdict rests on, that of each objective, and what the candidate accepts."""
    told = material.told.speedup
    if told is None:
        return
    whose, goals = "the best launch without", told.objectives
    if len(goals) > 1:
        yield Tile(wording.times(told.judged), f"{whose}, by {told.by}", wording.speedup_interval(told.judged))
    for one in goals:
        meaning = f"by {one.words} alone" if len(goals) > 1 else f"{whose}, by {one.words}"
        yield Tile(wording.times(one.ratio), meaning, wording.speedup_interval(one.ratio))
    levels = dict.fromkeys(objective.level for objective in material.space.objectives)
    rows = [row for level in levels if (row := material.row(told.candidate_id, level)) is not None]
    found = [(row, even) for row in rows if (even := row.figures.break_even) is not None]
    if found:
        needed = ", ".join(f"{wording.length(even.est)} at {row.level}" for row, even in found)
        first, _ = found[0]
        accepted = wording.length(first.figures.accept_length.est)
        yield Tile(accepted, f"its accept length at {first.level}", f"break-even for one request {needed}")
