"""How steady the machine was over a study, in words: launch noise, places, drift and jumps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spectune.analysis.drift import Jump
from spectune.search.evidence.timeline import Timeline, causes
from spectune.search.storage.records import TrialRecord


def steadiness(line: Timeline) -> list[str]:
    """Return launch noise, what places differ by, drift and jumps, in a sentence each."""
    told = [f"launch noise: {line.noise.source}", *_places(line)]
    if not line.jumps and all(one.drift is None for one in line.places):
        told.append("too few launches were repeated to see whether the machine drifts")
    return told + [jump_words(jump, line.every) for jump in line.jumps]


def jump_words(jump: Jump, records: Sequence[TrialRecord]) -> str:
    """Return a jump of the machine with what is known of its cause."""
    known = causes(jump, records)
    return f"{jump.words}; {'; '.join(known) if known else 'nothing is recorded that would explain it'}"


def _places(line: Timeline) -> Iterator[str]:
    """Yield how fast each place is, where there are several, and how it drifted."""
    for one in line.places:
        lead = f"{one.place}: " if len(line.places) > 1 else ""
        if one is not line.places[0]:
            speed = line.factors[one.place].speed
            yield (
                f"{lead}{speed.est:.3f} × as fast as {line.reference} ({speed.lo:.3f}–{speed.hi:.3f}); its "
                "figures are brought to that speed, and finalists are compared within a place"
            )
        if one.drift is not None:
            yield lead + one.drift.words
