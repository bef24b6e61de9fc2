"""The answer in a sentence, with the figures worth a glance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spectune.counts import several
from spectune.report import wording
from spectune.report.material import Material
from spectune.report.sections.section import Section

DECISIONS = {
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
    """The verdict."""

    sentence: str
    tiles: tuple[Tile, ...]
    words: tuple[str, ...]


def decision(material: Material) -> str:
    """Return the verdict in a word or two."""
    return _decision(material)[1]


def verdict(material: Material) -> Section:
    """Return the verdict of a study."""
    tone, decided = _decision(material)
    told = material.told
    return Section("verdict", decided, Answer(told["sentence"], tuple(_tiles(material)), tuple(told["words"])), tone)


def _decision(material: Material) -> tuple[str, str]:
    """Return tone and words: an answer that rests on the search alone, or on part of it, says so."""
    tone, decided = DECISIONS.get(material.told["verdict"], DECISIONS["undecided"])
    if material.told["verdict"] == "undecided" or material.focus is None:
        return tone, decided
    so_far = "" if material.told["finished"] else " so far"
    if material.doubt(material.focus):
        return "unclear", f"{decided}{so_far}: not confirmed by a later launch"
    return tone, decided + so_far


def _tiles(material: Material) -> Iterator[Tile]:
    level = material.space.objectives[0].level
    row = material.row(material.focus, level)
    if row is not None and row["speedup"]:
        spread = wording.speedup_interval(row["speedup"])
        yield Tile(wording.times(row["speedup"]), f"{row['label']} against the best launch without, at {level}", spread)
        yield Tile(
            wording.length(row["accept_length"][0]), "its accept length",
            f"break-even {wording.length(row['break_even'][0])}",
        )  # fmt: skip
    trials = material.trials
    failed = sum(trial["status"] == "failed" for trial in trials)
    suspect = sum(trial["status"] == "suspect" for trial in trials)
    yield Tile(
        str(len(trials)), "launch" if len(trials) == 1 else several("launch"), f"{failed} failed, {suspect} suspect"
    )  # fmt: skip
    effect = material.told["detectable_effect"]
    if effect is not None:
        yield Tile(f"{effect:.1%}", "smallest gain these launches could show")
