"""The part of `summary.json` about the machine: how far what it measures may be compared."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from spectune.analysis.drift import Drift
from spectune.analysis.estimate import Estimate
from spectune.search.answer.steadiness import jump_words, steadiness
from spectune.search.evidence.timeline import Timeline, causes


def machine_summary(line: Timeline) -> dict[str, Any]:
    """Return how far the machine may be trusted: how launches differ, and what changed meanwhile."""
    return {
        "noise": {"launch_sd": line.noise.relative_sd, "dof": line.noise.dof},
        "drift": _drift(line.places[0].drift) if line.places else None,
        "steadiness": steadiness(line),
        "jumps": list(_jumps(line)),
        "places": list(_places(line)),
    }


def _drift(drift: Drift | None) -> dict[str, Any] | None:
    """Return the change of all speeds in an hour, relative, and whether it was taken out of the figures."""
    if drift is None:
        return None
    return {"per_hour": _relative(drift.per_hour).to_json(), "corrected": drift.shown, "words": drift.words}


def _jumps(line: Timeline) -> Iterable[dict[str, Any]]:
    for jump in line.jumps:
        change = _relative(jump.change).to_json()
        yield {
            "before": jump.before, "after": jump.after, "change": change, "causes": causes(jump, line.every),
            "words": jump_words(jump, line.every),
        }  # fmt: skip


def _places(line: Timeline) -> Iterable[dict[str, Any]]:
    """Yield every place with its speed relative to the first, that of the reference."""
    for one in line.places:
        yield {
            "place": one.place,
            "launches": len(one.before) + len(one.launches),
            "speed": line.factors[one.place].speed.to_json(),
            "drift": _drift(one.drift),
        }


def _relative(log_change: Estimate) -> Estimate:
    return Estimate(math.expm1(log_change.est), math.expm1(log_change.lo), math.expm1(log_change.hi))
