"""A speed against another of the same thing, in words."""

from __future__ import annotations

import math
from dataclasses import replace

from spectune.analysis.comparison import Comparison
from spectune.analysis.estimate import Estimate

WORTH_A_FIGURE = 1.0
"""A change of more than this, relative, says as a detectable one only that next to nothing is known."""


def change_words(change: Comparison, than: str = "") -> str:
    """Say how a speed changed: `faster by 4.0 % (1.2–6.9 %)`, or what change could have been seen.

    Args:
        change: One speed against another.
        than: What the other is, where that has to be said.
    """
    against = than and f" than {than}"
    ratio = change.judged
    if ratio.lo > 1.0:
        return f"faster{against} by {_by(Estimate(ratio.est - 1.0, ratio.lo - 1.0, ratio.hi - 1.0))}"
    if ratio.hi < 1.0:
        return f"slower{against} by {_by(Estimate(1.0 - ratio.est, 1.0 - ratio.hi, 1.0 - ratio.lo))}"
    effect = change.detectable_effect
    if effect > WORTH_A_FIGURE:
        return "no difference shown: these launches tell too little"
    return f"no difference shown; {_percent(effect)} % or more would have been seen"


def changed(change: Comparison) -> bool:
    """Whether the speed is shown to have changed."""
    return not change.judged.lo <= 1.0 <= change.judged.hi


def beyond(change: Comparison, common: Comparison) -> Comparison:
    """Return a change without the one that everything shares, both measured apart from each other.

    ln ratios are subtracted and their variances added.
    """
    return replace(
        change,
        log_ratio=change.log_ratio - common.log_ratio,
        error=math.hypot(change.error, common.error),
        dof=min(change.dof, common.dof),
    )


def _by(relative: Estimate) -> str:
    low, high = (_percent(max(end, 0.0)) for end in (relative.lo, relative.hi))
    return f"{_percent(relative.est)} % ({low}–{high} %)"


def _percent(relative: float) -> str:
    return f"{100.0 * relative:.{1 if relative < 0.0995 else 0}f}"
