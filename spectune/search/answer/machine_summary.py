"""The part of `summary.json` about the machine: how far what it measures may be compared."""

from __future__ import annotations

import math
from collections.abc import Iterator

from spectune.analysis.drift import Drift
from spectune.analysis.estimate import Estimate
from spectune.search.answer.steadiness import jump_words
from spectune.search.answer.summary_fields import MachineDrift, MachineJump, Place
from spectune.search.evidence.timeline import Timeline, causes


def machine_drift(drift: Drift | None) -> MachineDrift | None:
    """Return the change of all speeds in an hour, relative, and whether it was taken out of the figures."""
    return None if drift is None else MachineDrift(_relative(drift.per_hour), drift.shown, drift.words)


def machine_jumps(line: Timeline) -> Iterator[MachineJump]:
    """Yield every jump of the machine with what is known of it."""
    for jump in line.jumps:
        known, words = causes(jump, line.every), jump_words(jump, line.every)
        yield MachineJump(jump.before, jump.after, _relative(jump.change), known, words)


def places(line: Timeline) -> Iterator[Place]:
    """Yield every place with its speed relative to the first, that of the reference."""
    for one in line.places:
        launches, speed = len(one.before) + len(one.launches), line.factors[one.place].speed
        yield Place(one.place, launches, speed, machine_drift(one.drift))


def _relative(log_change: Estimate) -> Estimate:
    return Estimate(math.expm1(log_change.est), math.expm1(log_change.lo), math.expm1(log_change.hi))
