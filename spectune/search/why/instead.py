"""Another launch beside a candidate: what it gives at every level, and the one of the study to run instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spectune.analysis.diagnosis import Action, Cause, Cost
from spectune.analysis.estimate import ratio
from spectune.analysis.why import BreakEvenRow
from spectune.search.answer.commands import export_command
from spectune.search.evidence.figures import Measured
from spectune.search.storage.values import keeps_bounds
from spectune.space import Candidate, SearchSpace

Beside = Sequence[tuple[str, float, float]]
"""(level, tok/s of one request with the other launch, with the candidate), the level in question first."""


def at_every_level(speeds: Beside) -> str:
    """Return what the other launch gives, in words."""
    return ", ".join(f"{new:.1f} tok/s at {level} instead of {now:.1f}" for level, new, now in speeds)


def advised(launch: str, speeds: Beside, space: SearchSpace) -> Action:
    """Advise another launch by what it gives at the level in question, and by what it costs at others.

    Args:
        launch: What to launch.
        speeds: Of both.
        space: Of the study, whose other objectives are named as such.
    """
    aims = {objective.level for objective in space.objectives}
    costs = [
        f"{new:.1f} at {level} instead of {now:.1f} "
        f"({round(new, 1) / round(now, 1) - 1.0:+.0%}{', an objective too' * (level in aims)})"
        for level, new, now in speeds[1:]
        if new < now
    ]
    gives = at_every_level(speeds[:1])
    if not costs:
        return Action(f"launch {launch}: {gives}", Cost.FLAG)
    words = f"where {speeds[0][0]} alone counts, launch {launch}: {gives}, but {' and '.join(costs)}"
    return Action(words, Cost.FLAG)


def shown_faster(
    row: BreakEvenRow, found: Sequence[Measured], space: SearchSpace, recommended: Candidate | None, *, study: str
) -> Cause | None:
    """Return the launch of the study to run instead of a candidate; None where none is shown to be faster at a level.

    It is the one that the study recommends, where that one is shown to be faster; else the fastest. One without
    speculation is shown to be faster where the candidate's verdict says so.

    Args:
        row: All requests of the candidate at the level.
        found: Everything that was measured.
        space: Of the study.
        recommended: What the study recommends.
        study: Its name, for commands.
    """
    own = {one.level: one for one in found if one.candidate.candidate_id == row.candidate_id}
    there = [one for one in found if one.level == row.level and one.candidate.candidate_id != row.candidate_id]
    faster = [one for one in there if _is_shown(one, own, row) and keeps_bounds(one.launches, space)]
    if not faster:
        return None
    best = max(faster, key=lambda one: (one.candidate == recommended, one.figures.decode_speed.est))
    speeds = _beside(best, found, own, row.level)
    label, pick = space.label(best.candidate), f"`{export_command(study, best.launches[-1].trial)}`"
    named = label if best.candidate.speculative else label.replace("no speculation", "without speculation", 1)
    by_whom = ", which the study recommends" if best.candidate == recommended else ""
    action = advised(f"{named}{by_whom} ({pick})", speeds, space)
    evidence = f"{label} was measured: {at_every_level(speeds)}"
    return Cause("not_the_fastest", speeds[0][1] - speeds[0][2], evidence, (action,), at_most=True)


def _is_shown(one: Measured, own: Mapping[str, Measured], row: BreakEvenRow) -> bool:
    gain = ratio(one.figures.decode_speed, own[row.level].figures.decode_speed)
    return gain.lo > 1.0 if one.candidate.speculative else row.verdict == "loses" and gain.est > 1.0


def _beside(best: Measured, found: Sequence[Measured], own: Mapping[str, Measured], first: str) -> Beside:
    speeds = [
        (one.level, one.figures.decode_speed.est, own[one.level].figures.decode_speed.est)
        for one in found
        if one.candidate == best.candidate and one.level in own
    ]
    return sorted(speeds, key=lambda speed: speed[0] != first)
